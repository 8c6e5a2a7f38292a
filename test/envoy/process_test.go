package envoy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/world"
)

// program finds Envoy, or skips the test.
func program(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Envoys")
	}
	if path := os.Getenv("TOLLGATE_ENVOY"); path != "" {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("TOLLGATE_ENVOY: %v", err)
		}
		return path
	}
	if path, err := filepath.Abs("../../.tools/bin/envoy"); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if path, err := exec.LookPath("envoy"); err == nil {
		return path
	}
	if os.Getenv("TOLLGATE_REQUIRE_ENVOY") != "" {
		t.Fatal("no Envoy in TOLLGATE_ENVOY, .tools/bin or PATH: .ci/install-tools envoy installs one")
	}
	t.Skip("no Envoy in TOLLGATE_ENVOY, .tools/bin or PATH: .ci/install-tools envoy installs one")
	return ""
}

// process is a running Envoy.
type process struct {
	// addr is where callers connect, admin the admin interface.
	addr, admin string
	// pid names the process, end ends it; log is its standard error.
	pid int
	end func()
	log *world.Buffer
	// access holds the access log, a JSON document a line.
	access *world.Buffer
}

// startTimeout bounds the start of Envoy, which takes a tenth of a second on a
// machine with nothing else to do.
const startTimeout = 60 * time.Second

// start runs Envoy with a bootstrap until the test ends, and waits until it
// listens to callers.
func start(t *testing.T, b *bootstrap) *process {
	t.Helper()
	p := launch(t, b)
	world.Until(t, "envoy listens to callers", func() bool { return p.locate(t) })
	return p
}

// launch runs Envoy with a bootstrap until the test ends.
func launch(t *testing.T, b *bootstrap) *process {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "envoy.json")
	text, err := json.Marshal(b.doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	address := filepath.Join(dir, "admin")
	cmd := exec.CommandContext(t.Context(), program(t),
		"-c", file, "--concurrency", "1", "--disable-hot-restart", "--admin-address-path", address, "--log-level", "warn", "--component-log-level", "main:info")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	p := &process{log: new(world.Buffer), access: new(world.Buffer)}
	cmd.Stdout = p.access
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	go p.watch(stderr, ready, ended)
	p.end = sync.OnceFunc(func() {
		_ = cmd.Cancel()
		<-ended
		_ = cmd.Wait() // killed by a signal, as it should be
	})
	t.Cleanup(func() {
		p.end() // in case the test ends before its context
		if t.Failed() {
			t.Logf("envoy said:\n%s", p.log.Last(100))
		}
	})
	p.pid = cmd.Process.Pid
	select {
	case <-ready:
	case <-ended:
		t.Fatalf("envoy ended at once:\n%s", p.log)
	case <-time.After(startTimeout):
		t.Fatalf("envoy is not ready after %s:\n%s", startTimeout, p.log)
	}
	admin, err := os.ReadFile(address)
	if err != nil {
		t.Fatal(err)
	}
	p.admin = strings.TrimSpace(string(admin))
	return p
}

// watch keeps what Envoy writes and tells when it has started and ended.
func (p *process) watch(stderr io.Reader, ready, ended chan<- struct{}) {
	defer close(ended)
	sc := bufio.NewScanner(stderr)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if !strings.Contains(sc.Text(), "[main] [source/server/server.cc:467]") { // what is linked in
			_, _ = fmt.Fprintln(p.log, sc.Text())
		}
		if ready != nil && strings.Contains(sc.Text(), "starting main dispatch loop") {
			close(ready)
			ready = nil
		}
	}
}

// locate finds the port the kernel gave, and reports whether there is one yet.
func (p *process) locate(t *testing.T) bool {
	t.Helper()
	var list struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Port int `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal([]byte(p.ask(t, "/listeners?format=json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, l := range list.Statuses {
		if l.Name == "callers" {
			p.addr = fmt.Sprintf("127.0.0.1:%d", l.Address.Socket.Port)
		}
	}
	return p.addr != ""
}

// ask reads a page of the admin interface.
func (p *process) ask(t *testing.T, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("admin %s: %d %v %s", path, res.StatusCode, err, body)
	}
	return string(body)
}

// stat reads one counter.
func (p *process) stat(t *testing.T, name string) int {
	t.Helper()
	for line := range strings.Lines(p.ask(t, "/stats")) {
		if rest, ok := strings.CutPrefix(line, name+": "); ok {
			var n int
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatalf("stat %s: %v", line, err)
			}
			return n
		}
	}
	t.Fatalf("envoy has no stat %s", name)
	return 0
}
