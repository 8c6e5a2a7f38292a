package deploy_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/built"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// patience bounds waiting for an event that is about to happen.
const patience = time.Minute

// callerKey is the key of the one caller of the tests' configuration.
const callerKey = "some_key_of_ours"

func TestMain(m *testing.M) {
	code := m.Run()
	binary.Remove()
	os.Exit(code)
}

// binary is tollgate.
var binary built.Shared //nolint:gochecknoglobals // built once for all tests

// process is a running tollgate. Its output is in log.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended and all it wrote is in log
	err   error         // how it ended

	mu  sync.Mutex // guards log
	log strings.Builder
}

// freeAddr chooses an address on the loopback interface that is given to nobody else while a program that is started again is away.
func freeAddr(t *testing.T) string {
	t.Helper()
	port, err := redistest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// start starts a program until the test ends.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			p.mu.Lock()
			p.log.WriteString(line)
			p.mu.Unlock()
			if err != nil {
				break
			}
		}
		p.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(cmd.Path), p.written())
		}
	})
	return p
}

// written returns the process's output so far.
func (p *process) written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// wait waits until the process has written want.
func (p *process) wait(t *testing.T, want string) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); !strings.Contains(p.written(), want); <-poll.C {
		select {
		case <-p.ended:
			t.Fatalf("%s ended, and had not written %q", filepath.Base(p.cmd.Path), want)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has not written %q", filepath.Base(p.cmd.Path), want)
		}
	}
}

// stop asks the process to end and waits until it has.
func (p *process) stop(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
		return
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Errorf("%s did not end in %v", filepath.Base(p.cmd.Path), patience)
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if p.err != nil {
		t.Errorf("%s ended with %v", filepath.Base(p.cmd.Path), p.err)
	}
}

// listen opens a TCP listener on loopback until the test ends.
func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// configure writes a configuration with one caller and returns its path.
func configure(t *testing.T, data, admin, platform, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tollgate.yaml")
	text := fmt.Sprintf(`listen: %s
admin: {listen: %s}
platform: {base_url: "%s"}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    keys: [{id: ann, sha256: %s}]
%s`, data, admin, platform, identity.DigestOf(callerKey), more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
