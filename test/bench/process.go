package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait for a process: starting, becoming ready, ending. LiteLLM
// takes 25 seconds to start on a busy core.
const patience = 90 * time.Second

// machine is where processes run: the directory of their files and their cores.
type machine struct {
	dir string
	pin bool
}

// place is the cores of a process.
type place int

// The measured processes have one core, and those around them the others.
const (
	measured place = iota
	around
)

// command builds a command line that runs in a place.
func (m machine) command(ctx context.Context, at place, program string, args ...string) *exec.Cmd {
	argv := append([]string{program}, args...)
	if m.pin {
		cores := "0"
		if at == around {
			cores = "1-" + strconv.Itoa(runtime.NumCPU()-1)
		}
		argv = append([]string{"taskset", "--cpu-list", cores}, argv...) // taskset becomes the program: the process stays the same
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	return cmd
}

// process is a running server.
type process struct {
	name string
	cmd  *exec.Cmd
	// started is when it was started, and took how long it was until it was
	// ready.
	started time.Time
	took    time.Duration
	log     string
	ended   chan struct{}
	stdin   io.WriteCloser
}

// start starts a program that logs to a file. Its input, if any, is written to its
// standard input, which stays open as long as the process runs.
func (m machine) start(name string, cmd *exec.Cmd, input any) (*process, error) {
	p := &process{name: name, cmd: cmd, log: filepath.Join(m.dir, name+".log"), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if input != nil {
		w, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		p.stdin = w
	}
	p.started = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // how a server ended after it was told to says nothing
		close(p.ended)
	}()
	if input != nil {
		if err := json.NewEncoder(p.stdin).Encode(input); err != nil {
			p.stop()
			return nil, fmt.Errorf("%s: %w: %s", name, err, p.said())
		}
	}
	return p, nil
}

// role starts this program in one of its roles.
func (m machine) role(ctx context.Context, at place, role string, input any) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return m.start(role, m.command(ctx, at, self, role), input)
}

// ready waits until a check succeeds.
func (p *process) ready(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			p.took = time.Since(p.started)
			return nil
		}
		select {
		case <-tick.C:
		case <-p.ended:
			return fmt.Errorf("%s ended: %s", p.name, p.said())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %s", p.name, err, p.said())
		}
	}
}

// said is the end of the process's log, in one line.
func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	return strings.ReplaceAll(string(text[max(0, len(text)-600):]), "\n", " | ")
}

// stop ends the process and waits for it.
func (p *process) stop() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	<-p.ended
}

// cpu returns the CPU time that the process has used in seconds, all its threads together:
// its CPU clock (clock_getcpuclockid(3)), which is what /proc/PID/stat shows in
// hundredths of a second.
func (p *process) cpu() (float64, error) {
	const sched = 2 // CPUCLOCK_SCHED of the whole process
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|sched), &t); err != nil {
		return 0, fmt.Errorf("CPU clock of %s: %w", p.name, err)
	}
	return time.Duration(t.Nano()).Seconds(), nil
}

// switches returns how often a thread of the process had to wait (proc(5),
// voluntary_ctxt_switches). Threads that have ended are not among them: Go keeps its own.
func (p *process) switches() (sum float64, err error) {
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/task/*/status")
	if err != nil {
		return 0, err
	}
	for _, path := range threads {
		n, err := status(path, "\nvoluntary_ctxt_switches:")
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return 0, err
		}
		sum += float64(n)
	}
	return sum, nil
}

// status reads a number of a status file (proc(5)).
func status(path, name string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), name)
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0, fmt.Errorf("%s has no %s", path, name)
	}
	return strconv.ParseInt(fields[0], 10, 64)
}

// memory returns the process's resident set in bytes (proc(5), VmRSS).
func (p *process) memory() (int64, error) {
	kb, err := status("/proc/"+strconv.Itoa(p.cmd.Process.Pid)+"/status", "VmRSS:")
	return kb << 10, err
}

// split returns host and port of an address of our own.
func split(addr string) (host, port string) {
	host, port, _ = strings.Cut(addr, ":")
	return host, port
}

// host is the address of loopback that the servers of this process listen on. It is no
// other process's: another program, such as a test that runs beside this one, can neither
// take a server's port nor answer in its place.
func host() net.IP {
	pid := os.Getpid()
	return net.IPv4(127, byte(1+pid>>16%254), byte(pid>>8), byte(1+pid%254))
}

// port returns an address of the host that was free a moment ago.
func port(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host().String(), "0"))
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// accepts checks that something listens.
func accepts(addr string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// answers checks that a URL answers 200.
func answers(url string) func(context.Context) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s answers %d", url, res.StatusCode)
		}
		return nil
	}
}
