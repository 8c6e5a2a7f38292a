package script

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/built"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

func TestStories(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "tollgate")
	if err := built.Tollgate(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			tools, err := filepath.Abs("../../.tools/bin")
			if err != nil {
				return err
			}
			bin := filepath.Dir(binary)
			e.Vars = append(e.Vars, "BIN="+bin, "PATH="+strings.Join([]string{bin, tools, os.Getenv("PATH")}, string(os.PathListSeparator)))
			e.Values[procsKey{}] = map[string]*proc{}
			e.Defer(func() {
				for _, p := range procs(e.Values) {
					_ = p.stop()
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": start, "await": await, "halt": halt, "hangup": hangup, "appears": appears, "exits": exits, "ask": ask, "flood": flood, "send": send, "port": port, "subst": subst, "capture": capture, "serves": serves, "refuses": refuses,
		},
		Condition:           condition,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// condition knows [room_in_day]: the day, by whose quotas some stories count, does
// not end soon; and [envoy_required]: a story that needs Envoy must not be skipped.
func condition(name string) (bool, error) {
	switch name {
	case "room_in_day":
	case "envoy_required":
		return os.Getenv("TOLLGATE_REQUIRE_ENVOY") != "", nil
	default:
		return false, fmt.Errorf("unknown condition %q", name)
	}
	now := time.Now()
	return now.Truncate(24*time.Hour).Add(24*time.Hour).Sub(now) > patience, nil
}

// procsKey holds the processes of a story.
type procsKey struct{}

func procs(values map[any]any) map[string]*proc {
	return values[procsKey{}].(map[string]*proc)
}

func procOf(ts *testscript.TestScript, name string) *proc {
	p, ok := ts.Value(procsKey{}).(map[string]*proc)[name]
	if !ok {
		ts.Fatalf("no process %q was started", name)
	}
	return p
}

// proc is a process in the background. Its output arrives line by line.
type proc struct {
	cmd   *exec.Cmd
	lines chan string
	seen  bytes.Buffer
	// ended is closed when the process has ended; err is how, from then on.
	ended chan struct{}
	err   error
}

// follow takes the output from out, line by line, and then how the process ended.
func (p *proc) follow(out io.ReadCloser) {
	defer close(p.ended)
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		p.lines <- sc.Text()
	}
	close(p.lines)
	_, _ = io.Copy(io.Discard, out) // after a line that is too long
	_ = out.Close()
	p.err = p.cmd.Wait()
}

// stop asks the process to end, reads its last lines, and returns how it ended.
func (p *proc) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	for line := range p.lines {
		p.seen.WriteString(line + "\n")
	}
	<-p.ended
	return p.err
}

// patience bounds every wait of a story. It is only there to end one that hangs.
const patience = 3 * time.Minute

// start NAME command args... runs a command in the background.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME command args...")
	}
	cmd := exec.CommandContext(context.Background(), args[1], args[2:]...)
	if args[1] == "tollgate" {
		cmd = exec.CommandContext(context.Background(), filepath.Join(ts.Getenv("BIN"), "tollgate"), args[2:]...)
	}
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "ACME_KEY="+ts.Getenv("ACME_KEY"), "GLOBEX_KEY="+ts.Getenv("GLOBEX_KEY"))
	r, w, err := os.Pipe()
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	_ = w.Close() // the process has it
	if err != nil {
		_ = r.Close()
		ts.Fatalf("%s: %v", args[0], err)
	}
	p := &proc{cmd: cmd, lines: make(chan string, 10_000), ended: make(chan struct{})}
	ts.Value(procsKey{}).(map[string]*proc)[args[0]] = p
	go p.follow(r)
}

// await NAME regexp [VARIABLE...] reads a process's output until a line
// matches, and sets variables from the groups.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await NAME regexp [VARIABLE...]")
	}
	p := procOf(ts, args[0])
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				ts.Fatalf("%s ended before a line matched %s; it said:\n%s", args[0], re, &p.seen)
			}
			p.seen.WriteString(line + "\n")
			if m := re.FindStringSubmatch(line); m != nil {
				for i, name := range args[2:] {
					ts.Setenv(name, m[i+1])
				}
				return
			}
		case <-timeout.C:
			ts.Fatalf("%s: no line matched %s; it said:\n%s", args[0], re, &p.seen)
		}
	}
}

// halt NAME ends a process by SIGTERM; it must end cleanly.
func halt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: halt NAME")
	}
	p := procOf(ts, args[0])
	if err := p.stop(); err != nil {
		ts.Fatalf("%s ended with %v; it said:\n%s", args[0], err, &p.seen)
	}
}

// hangup NAME sends SIGHUP to a process.
func hangup(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hangup NAME")
	}
	ts.Check(procOf(ts, args[0]).cmd.Process.Signal(syscall.SIGHUP))
}

// appears REGEXP FILE waits until a file has what matches.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: appears REGEXP FILE")
	}
	re, err := regexp.Compile(args[0])
	ts.Check(err)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	timeout := time.After(patience)
	for {
		if text, err := os.ReadFile(ts.MkAbs(args[1])); err == nil && re.Match(text) {
			return
		}
		select {
		case <-look.C:
		case <-timeout:
			ts.Fatalf("%s: nothing matched %s", args[1], re)
		}
	}
}

// exits CODE tollgate args... runs a command that must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// ask METHOD URL KEY [BODY [HEADER...]] sends a request; status, headers and body become
// standard output. An empty KEY sends none. A BODY that begins with @ names a file.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: ask METHOD URL KEY [BODY [HEADER...]]")
	}
	var body io.Reader
	if len(args) > 3 {
		text := args[3]
		if file, isFile := strings.CutPrefix(text, "@"); isFile {
			text = ts.ReadFile(file)
		}
		body = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(context.Background(), args[0], args[1], body)
	ts.Check(err)
	if args[2] != "" {
		req.Header.Set("Authorization", "Bearer "+args[2])
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, header := range args[min(len(args), 4):] {
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Add(name, value)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	res, err := client.Do(req)
	ts.Check(err)
	defer func() { _ = res.Body.Close() }()
	_, _ = fmt.Fprintf(ts.Stdout(), "%d\n", res.StatusCode)
	ts.Check(res.Header.Write(ts.Stdout()))
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(err)
}

// flood N STATUS URL KEY BODY posts a body N times. All responses must have that status.
func flood(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: flood N STATUS URL KEY BODY")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	client := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: patience}
	defer client.CloseIdleConnections()
	for range n {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, args[2], strings.NewReader(args[4]))
		ts.Check(err)
		req.Header.Set("Authorization", "Bearer "+args[3])
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		ts.Check(err)
		_, err = io.Copy(io.Discard, res.Body)
		ts.Check(errors.Join(err, res.Body.Close()))
		if strconv.Itoa(res.StatusCode) != args[1] {
			ts.Fatalf("status %d, want %s", res.StatusCode, args[1])
		}
	}
}

// send ADDRESS FILE [open] sends the lines of a file, without the last line end, by one connection, half-closes it unless it is to stay open, and
// prints what comes back until the connection ends.
func send(ts *testscript.TestScript, neg bool, args []string) {
	open := len(args) == 3 && args[2] == "open"
	if neg || len(args) != 2 && !open {
		ts.Fatalf("usage: send ADDRESS FILE [open]")
	}
	conn, err := net.Dial("tcp", args[0])
	ts.Check(err)
	defer func() { _ = conn.Close() }()
	ts.Check(conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, strings.ReplaceAll(strings.TrimSuffix(ts.ReadFile(args[1]), "\n"), "\n", "\r\n"))
	ts.Check(err)
	if !open {
		ts.Check(conn.(*net.TCPConn).CloseWrite())
	}
	_, err = io.Copy(ts.Stdout(), conn)
	ts.Check(err)
}

// serves URL KEY waits until a GET is answered with 200.
func serves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: serves URL KEY")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	timeout := time.After(patience)
	for {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, args[0], http.NoBody)
		ts.Check(err)
		req.Header.Set("Authorization", "Bearer "+args[1])
		if res, err := client.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-look.C:
		case <-timeout:
			ts.Fatalf("%s was never answered with 200", args[0])
		}
	}
}

// refuses URL fails if a server still accepts connections there.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: refuses URL")
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(args[0], "http://"))
	if err == nil {
		_ = conn.Close()
		ts.Fatalf("%s still accepts connections", args[0])
	}
}

// capture REGEXP VARIABLE... sets variables from groups in the last standard output.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: capture REGEXP VARIABLE...")
	}
	re, err := regexp.Compile(args[0])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != len(args) {
		ts.Fatalf("nothing matches %s", re)
	}
	for i, name := range args[1:] {
		ts.Setenv(name, m[i+1])
	}
}

// port VARIABLE sets a variable to a free port, for a server that must be told one.
func port(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: port VARIABLE")
	}
	p, err := redistest.FreePort()
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(p))
}

// subst FROM TO expands ${VARIABLES} and ${SHA256:key} of a file.
func subst(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: subst FROM TO")
	}
	text := os.Expand(ts.ReadFile(args[0]), func(name string) string {
		if key, ok := strings.CutPrefix(name, "SHA256:"); ok {
			return identity.DigestOf(key).String()
		}
		return ts.Getenv(name)
	})
	// Written beside and renamed, as deployments do.
	tmp := ts.MkAbs(args[1] + ".tmp")
	ts.Check(os.WriteFile(tmp, []byte(text), 0o600))
	ts.Check(os.Rename(tmp, ts.MkAbs(args[1])))
}
