package redistest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// require is the environment variable that makes a missing server a failure.
const require = "TOLLGATE_REQUIRE_REDIS"

// attempts bounds how often a port is chosen: between the look whether it is free
// and the server's own bind, another process may take it.
const attempts = 20

// Ports are chosen from firstPort on and below endPort, where Linux, as it comes,
// gives none to connections and to listeners that ask for any. So a port is not
// taken either while its server is down.
const firstPort, endPort = 10_000, 32_768

// Start starts a server without persistence and returns its address.
func Start(t testing.TB) string {
	t.Helper()
	return Run(t).Addr()
}

// Server is a running redis-server. Its methods fail the test on error.
type Server struct {
	t    testing.TB
	path string
	port int
	args []string
	// ready is printed by it when it can be used.
	ready string

	mu  sync.Mutex
	cmd *exec.Cmd
	log *tail
}

// Run starts a server with additional arguments, as on the command line of
// redis-server ("--appendonly", "yes"). Its directory is empty at first and
// survives Restart.
func Run(t testing.TB, args ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	return launch(t, readyServer, func(port int) []string {
		return append(arguments(dir, "--port", strconv.Itoa(port)), args...)
	})
}

// The lines that servers print when they can be used.
const (
	readyServer   = "Ready to accept connections"
	readySentinel = "Sentinel ID is"
)

// arguments are those of a server that keeps to dir and listens as told.
func arguments(dir string, listen ...string) []string {
	return append([]string{
		"--bind", "127.0.0.1", "--dir", dir, "--daemonize", "no", "--save", "", "--appendonly", "no", "--logfile", "",
	}, listen...)
}

// launch starts a server on a free port. The arguments are asked for again with
// another one when that has been taken meanwhile.
func launch(t testing.TB, ready string, args func(port int) []string) *Server {
	t.Helper()
	path := look(t)
	var err error
	for range attempts {
		port, portErr := FreePort()
		if portErr != nil {
			t.Fatal(portErr)
		}
		s := &Server{t: t, path: path, port: port, ready: ready}
		s.args = args(s.port)
		if err = s.start(); err == nil {
			t.Cleanup(s.Kill)
			return s
		}
		if !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	t.Fatalf("redistest: %v", err)
	return nil
}

// Addr returns host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Kill ends the server at once, as a crash would. It may be called when the
// server has ended already.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("redistest: kill: %v", err)
	}
	_ = s.cmd.Wait() // it was killed: that is its exit status
	s.cmd = nil
}

// Restart kills the server and starts it again on the same port.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.Resume()
}

// Resume starts a server that was killed again on the same port.
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatalf("redistest: restart: %v", err)
	}
}

// Freeze stops the server from answering, with its connections open, until Thaw.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig os.Signal) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		s.t.Fatalf("redistest: %v: server is not running", sig)
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redistest: %v: %v", sig, err)
	}
}

// start starts the process and waits until it accepts connections.
func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command(s.path, s.args...)
	cmd.SysProcAttr = dieWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	log := &tail{text: s.ready, ready: make(chan struct{})}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		log.read(out)
	}()
	select {
	case <-log.ready:
		s.cmd, s.log = cmd, log
		return nil
	case <-ended:
		err := cmd.Wait()
		return fmt.Errorf("%s ended early: %w\n%s", s.path, err, log)
	}
}

// tail keeps the output of a server and notices when it is ready.
type tail struct {
	text  string
	once  sync.Once
	ready chan struct{}

	mu   sync.Mutex
	seen bytes.Buffer
}

func (l *tail) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		_, _ = fmt.Fprintln(l, lines.Text()) // a Buffer does not fail
		if strings.Contains(lines.Text(), l.text) {
			l.once.Do(func() { close(l.ready) })
		}
	}
}

// Write implements io.Writer.
func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen.Write(p)
}

// String returns all that was printed.
func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen.String()
}

// look finds the server's program.
func look(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err == nil {
		return path
	}
	if os.Getenv(require) != "" {
		t.Fatalf("redistest: %s is set, but redis-server is not in PATH", require)
	}
	t.Skipf("redistest: redis-server is not in PATH; install Redis 7 to run this test (set %s to fail instead)", require)
	return ""
}

// FreePort chooses a port on the loopback interface that is free, and
// that the kernel gives to no other program until a server listens there.
func FreePort() (int, error) {
	var err error
	for range 1000 {
		port := firstPort + rand.N(endPort-firstPort)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("redistest: no free port from %d to %d: %w", firstPort, endPort-1, err)
}
