package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fleet is the servers of one run.
type fleet struct {
	targets   []*process
	others    []*process
	storeKind string
}

// process is one server.
type process struct {
	name, addr string
	cmd        *exec.Cmd
}

func startFleet(ctx context.Context) (*fleet, error) {
	f := &fleet{storeKind: "Redis in a process of its own"}
	store, err := startRedis(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		f.storeKind = "embedded in the gateway"
		store = &process{}
	case err != nil:
		return f, err
	default:
		f.others = append(f.others, store)
	}
	emulator, err := startSelf(ctx, "emulator directly", "emulator", "", "")
	if err != nil {
		return f, err
	}
	f.targets = append(f.targets, emulator)
	for _, t := range []struct{ name, role string }{{baseline, "proxy"}, {"tollgate", "gateway"}} {
		p, err := startSelf(ctx, t.name, t.role, emulator.addr, store.addr)
		if err != nil {
			return f, err
		}
		f.targets = append(f.targets, p)
	}
	return f, nil
}

// startSelf starts this program as a server, which prints its address first.
func startSelf(ctx context.Context, name, role, upstream, store string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-role", role, "-upstream", upstream, "-store", store)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: cmd}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not start: %w", name, err), p.stop())
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// startRedis starts a Redis that keeps nothing, on a port it is told.
func startRedis(ctx context.Context) (*process, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	l, err := listen()
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_ = l.Close() // Redis takes the port over
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.CommandContext(ctx, path, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{name: "redis", addr: addr, cmd: cmd}, nil
}

// stop ends every process that was started.
func (f *fleet) stop() error {
	var errs []error
	for _, p := range append(f.targets, f.others...) {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}

func (p *process) stop() error {
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	kill := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Signal(syscall.SIGKILL) })
	defer kill.Stop()
	_ = p.cmd.Wait() // how it ended after the measurements says nothing
	return nil
}

// ticks is the kernel's unit of process times.
const ticks = time.Second / 100

// cpu returns the CPU time the process has used (proc(5), stat).
func (p *process) cpu() (time.Duration, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, errors.New("unexpected form of /proc/PID/stat")
	}
	var sum time.Duration
	for _, i := range []int{11, 12} { // utime, stime
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * ticks
	}
	return sum, nil
}
