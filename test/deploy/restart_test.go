package deploy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// manager is the part of a service manager that a restart needs: it holds the sockets,
// starts processes with them as sd_listen_fds(3) says, and receives their messages by
// sd_notify(3).
type manager struct {
	config string
	names  []string
	files  []*os.File
	notify *net.UnixConn
}

func newManager(t *testing.T, config string, sockets map[string]*net.TCPListener) *manager {
	t.Helper()
	m := &manager{config: config}
	for name, l := range sockets {
		file, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		m.names, m.files = append(m.names, name), append(m.files, file)
	}
	var err error
	m.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(t.TempDir(), "notify")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.notify.Close() })
	return m
}

// start starts a gateway. The shell is there for LISTEN_PID, which only the
// process itself knows, and is replaced by it.
func (m *manager) start(t *testing.T) *process {
	t.Helper()
	return start(t, m.command(t))
}

func (m *manager) command(t *testing.T) *exec.Cmd {
	t.Helper()
	return m.run(t, binary.Path(t), "serve", "-c", m.config)
}

// run is the command that starts a program with the sockets.
func (m *manager) run(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", slices.Concat([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, program}, args)...)
	cmd.Env = append(os.Environ(), "ACME_KEY="+platform.DefaultKey, "NOTIFY_SOCKET="+m.notify.LocalAddr().String(),
		fmt.Sprintf("LISTEN_FDS=%d", len(m.files)), "LISTEN_FDNAMES="+strings.Join(m.names, ":"))
	cmd.ExtraFiles = m.files
	return cmd
}

// states returns the next n notifications, without what follows their first line.
func (m *manager) states(t *testing.T, n int) []string {
	t.Helper()
	if err := m.notify.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var states []string
	for range n {
		b := make([]byte, 1024)
		size, err := m.notify.Read(b)
		if err != nil {
			t.Fatalf("after the notifications %q: %v", states, err)
		}
		state, more, _ := strings.Cut(string(b[:size]), "\n")
		if (state == "RELOADING=1") != strings.HasPrefix(more, "MONOTONIC_USEC=") {
			t.Errorf("notification %q goes on with %q", state, more)
		}
		states = append(states, state)
	}
	return states
}

func (m *manager) expect(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, m.states(t, len(want))); diff != "" {
		t.Fatalf("notifications (-want +got):\n%s", diff)
	}
}

// traffic calls a gateway on several connections at once, one call after the other
// and none twice, whatever becomes of it.
type traffic struct {
	addr    string
	end     context.CancelFunc
	group   sync.WaitGroup
	calls   atomic.Int64
	created atomic.Int64

	mu   sync.Mutex // guards lost
	lost []string
}

// callers is how many connections traffic keeps busy.
const callers = 8

func newTraffic(t *testing.T, addr string) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &traffic{addr: addr, end: cancel}
	for i := range callers {
		l.group.Go(func() { l.call(ctx, i) })
	}
	t.Cleanup(func() { l.finish() })
	return l
}

// call is one caller.
func (l *traffic) call(ctx context.Context, number int) {
	var conn net.Conn
	for n := 0; ctx.Err() == nil; n++ {
		method, body, want := http.MethodGet, "", http.StatusOK
		if number == 0 && n%20 == 0 {
			method, body, want = http.MethodPost, `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`, http.StatusCreated
		}
		status, err := l.ask(&conn, world.Request(method, "/v2/pods", callerKey, body))
		switch {
		case err != nil:
			l.lose(fmt.Sprintf("%s: %v", method, err))
			conn = nil
		case status != want:
			l.lose(fmt.Sprintf("%s: status %d, want %d", method, status, want))
		case want == http.StatusCreated:
			l.created.Add(1)
		}
		l.calls.Add(1)
	}
	if conn != nil {
		_ = conn.Close()
	}
}

// ask sends a request on conn, or on a new connection if that is nil. It leaves nil
// if the answer ends the connection.
func (l *traffic) ask(conn *net.Conn, raw string) (status int, err error) {
	if *conn == nil {
		if *conn, err = net.DialTimeout("tcp", l.addr, patience); err != nil {
			return 0, err
		}
	}
	if err := (*conn).SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(*conn, raw); err != nil {
		return 0, err
	}
	method, _, _ := strings.Cut(raw, " ")
	res, err := http.ReadResponse(bufio.NewReader(*conn), &http.Request{Method: method})
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	if res.Close {
		_ = (*conn).Close()
		*conn = nil
	}
	return res.StatusCode, nil
}

func (l *traffic) lose(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, what)
}

// more waits until n more calls are answered.
func (l *traffic) more(t *testing.T, n int64) {
	t.Helper()
	enough := l.calls.Load() + n
	world.Until(t, fmt.Sprintf("%d calls more are answered", n), func() bool { return l.calls.Load() >= enough })
}

// finish ends the calls and returns the lost ones.
func (l *traffic) finish() []string {
	l.end()
	l.group.Wait()
	return l.lost
}

// forTests are the settings of the tests' gateways: notice is longer than callers pause, and nothing
// takes longer than draining.
const forTests = "redis: {embedded: true}\ntimeouts: {notice: 300ms, drain: 10s}\n"

func TestRestartLosesNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		restart func(t *testing.T, m *manager, first *process)
	}{
		{"one after the other", func(t *testing.T, m *manager, first *process) {
			first.stop(t)
			m.expect(t, "STOPPING=1")
			m.start(t)
			m.expect(t, "READY=1")
		}},
		{"side by side", func(t *testing.T, m *manager, first *process) {
			m.start(t)
			m.expect(t, "READY=1")
			first.stop(t)
			m.expect(t, "STOPPING=1")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			upstream := platform.RunT(t, platform.WithOptions(platform.Options{Strict: true, KeepCalls: 1_000_000})) // callers may make more than are kept by default
			data, admin := listen(t), listen(t)
			m := newManager(t, configure(t, data.Addr().String(), admin.Addr().String(), upstream.URL, forTests),
				map[string]*net.TCPListener{"data": data, "admin": admin})
			first := m.start(t)
			m.expect(t, "READY=1")
			callers := newTraffic(t, data.Addr().String())
			callers.more(t, 100)
			tc.restart(t, m, first)
			callers.more(t, 100)
			if lost := callers.finish(); len(lost) > 0 {
				t.Errorf("%d of %d calls were lost, the first: %s", len(lost), callers.calls.Load(), lost[0])
			}
			if got, want := created(upstream), callers.created.Load(); got != want {
				t.Errorf("the platform created %d pods, callers were told of %d", got, want)
			}
		})
	}
}

// created counts the creates that the platform carried out.
func created(upstream *platform.Instance) (n int64) {
	for _, c := range upstream.Calls() {
		if c.Method == http.MethodPost && c.Path == "/v2/pods" && c.Status == http.StatusCreated {
			n++
		}
	}
	return n
}

func TestReloadIsNotified(t *testing.T) {
	t.Parallel()
	data, admin := listen(t), listen(t)
	m := newManager(t, configure(t, data.Addr().String(), admin.Addr().String(), "http://127.0.0.1:1", forTests),
		map[string]*net.TCPListener{"data": data, "admin": admin})
	p := m.start(t)
	m.expect(t, "READY=1")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.expect(t, "RELOADING=1", "READY=1")
	p.stop(t)
	m.expect(t, "STOPPING=1")
}

// Sockets that the configuration does not mean are refused: it was judged by
// the addresses that it says.
func TestForeignSocketsAreRefused(t *testing.T) {
	t.Parallel()
	l := listen(t)
	for _, tc := range []struct{ name, socket, data, want string }{
		{"another name", "http", l.Addr().String(), `unknown listener "http"`},
		{"another port", "data", "127.0.0.1:1", `but listen is configured as "127.0.0.1:1"`},
		{"another address", "data", strings.Replace(l.Addr().String(), "127.0.0.1", "127.0.0.2", 1), "but listen is configured as"},
		{"all addresses", "data", strings.Replace(l.Addr().String(), "127.0.0.1", "", 1), "but listen is configured as"},
	} {
		m := newManager(t, configure(t, tc.data, "127.0.0.1:0", "http://127.0.0.1:1", forTests), map[string]*net.TCPListener{tc.socket: l})
		cmd := m.command(t)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v, %s; want %q", tc.name, err, out, tc.want)
		}
	}
}

// The same with the program of systemd that passes sockets.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	activate, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("systemd-socket-activate is not installed")
	}
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	upstream := platform.RunT(t)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), activate, "--listen="+addr, "--fdname=data", "--setenv=ACME_KEY="+platform.DefaultKey,
		binary.Path(t), "serve", "-c", configure(t, addr, "127.0.0.1:0", upstream.URL, forTests))
	p := start(t, cmd)
	p.wait(t, "Listening on")
	if got := world.Ask(t, addr, world.Request(http.MethodGet, "/v2/pods", callerKey, "")); got.Status != http.StatusOK {
		t.Errorf("the first call is answered with %d, want 200: %s", got.Status, got.Body)
	}
}
