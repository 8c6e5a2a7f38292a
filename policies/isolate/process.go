package isolate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// header precedes a request on standard input.
type header struct {
	Job      string        `json:"job"`
	Deadline time.Duration `json:"deadline"`
	// Memory is the memory limit of the job in bytes, enforced by the child if the parent cannot measure its memory.
	Memory int64 `json:"memory"`
	// Size is the length of the request, which follows the header line.
	Size int `json:"size"`
}

// reply is the last line written by a child.
type reply struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  *JobError       `json:"error,omitempty"`
}

// readyLine is written by a child after it has read its request.
const readyLine = "ready\n"

// Exit codes of children.
const (
	exitRequest = 2 // the parent did not send a request, or did not read the answer
	exitOrphan  = 3 // the parent has exited, or failed to kill the child
	exitMemory  = 4 // the child used too much memory
)

// perByte is the memory that a child may use per byte of the request while reading it.
const perByte = 32

// start runs a job in a child and returns its answer. The caller must hold a slot.
func (r *Runner) start(ctx context.Context, j *Job, request []byte) ([]byte, error) {
	ctx, stop := r.open(ctx)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, expire := context.WithTimeoutCause(ctx, slack*j.Deadline, ErrDeadline)
	defer expire()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	cmd := r.cfg.Command()
	cmd.Env, cmd.Dir = []string{}, "/"
	fatal := &head{left: 1 << 10}
	cmd.Stderr = fatal
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.marked.Do(closeInChildren)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCrashed, err)
	}
	kill := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // fails if the child has exited
	defer kill()
	w := &watch{pid: cmd.Process.Pid, memory: r.cfg.Memory, deadline: j.Deadline, end: cancel}
	w.bound.Store(r.cfg.Memory + perByte*int64(len(request)))
	watched := w.begin(ctx)

	sent := make(chan error, 1)
	go func() { sent <- send(ctx, stdin, j, r.cfg.Memory, request) }()
	answer, readErr := receive(stdout, w.ready)
	waitErr := cmd.Wait() // also closes stdin, which ends send
	cause := context.Cause(ctx)
	cancel(nil)
	<-watched
	sendErr := <-sent
	switch {
	case cause != nil:
		return nil, cause
	case cmd.ProcessState.ExitCode() == exitMemory:
		return nil, ErrMemory
	case readErr != nil, waitErr != nil:
		return nil, crash(errors.Join(waitErr, readErr), fatal)
	case answer.Error != nil:
		return nil, answer.Error
	case sendErr != nil:
		return nil, sendErr
	}
	return answer.Answer, nil
}

// crash returns the error for a child that exited without an answer. The first line on its standard error is the reason.
func crash(err error, fatal *head) error {
	line, _, _ := bytes.Cut(fatal.text, []byte("\n"))
	if text := string(bytes.ToValidUTF8(bytes.TrimSpace(line), nil)); text != "" {
		return fmt.Errorf("%w: %s", ErrCrashed, text)
	}
	return fmt.Errorf("%w: %w", ErrCrashed, err)
}

// send writes a request and the input of its job. It is not an error if the child exits early.
func send(ctx context.Context, stdin io.WriteCloser, j *Job, memory int64, request []byte) error {
	defer func() { _ = stdin.Close() }()
	err := json.NewEncoder(stdin).Encode(header{Job: j.Name, Deadline: j.Deadline, Memory: memory, Size: len(request)})
	if err == nil {
		_, err = stdin.Write(request)
	}
	if err == nil && j.Input != nil {
		err = j.Input(ctx, stdin)
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// receive reads the output of a child. It calls ready when the child has read its request.
func receive(stdout io.Reader, ready func()) (reply, error) {
	var out reply
	in := bufio.NewReader(io.LimitReader(stdout, maxAnswer))
	line, err := in.ReadString('\n')
	if err != nil || line != readyLine {
		return out, errors.Join(errors.New("child process did not read the request"), err)
	}
	ready()
	err = json.NewDecoder(in).Decode(&out)
	_, _ = io.Copy(io.Discard, stdout) // until the child exits
	return out, err
}

// head keeps the beginning of the data written to it.
type head struct {
	text []byte
	left int // remaining bytes
}

// Write implements io.Writer.
func (h *head) Write(b []byte) (int, error) {
	n := min(len(b), h.left)
	h.text, h.left = append(h.text, b[:n]...), h.left-n
	return len(b), nil
}

// measureInterval is the interval at which a child's memory is measured.
const measureInterval = 5 * time.Millisecond

// slack is the factor by which the elapsed time of a job may exceed its processor time on a busy machine.
const slack = 4

// watch ends a job whose child uses too much memory or processor time.
type watch struct {
	pid      int
	memory   int64 // memory limit of the job
	bound    atomic.Int64
	deadline time.Duration // of processor time
	end      context.CancelCauseFunc
}

// ready sets the memory limit to the child's current memory plus the memory of the job.
func (w *watch) ready() {
	if now, ok := private(w.pid); ok {
		w.bound.Store(now + w.memory)
	}
}

// begin watches the child until ctx ends, and then closes the returned channel.
func (w *watch) begin(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		next := time.NewTicker(measureInterval)
		defer next.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
			}
			now, ok := private(w.pid)
			switch {
			case !ok: // the child has exited, or limits itself
			case now > w.bound.Load():
				w.end(ErrMemory)
				return
			case n%perMeasurement == 0 && processorTime(w.pid) > w.deadline:
				w.end(ErrDeadline)
				return
			}
		}
	}()
	return ended
}

// perMeasurement is the number of memory measurements per measurement of processor time, which the system counts in hundredths of a
// second.
const perMeasurement = 4

// processorTime returns the processor time used by a process, or 0 if it is unknown.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The program's name, in parentheses, may contain spaces.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const user, system = 11, 12 // fields 14 and 15 of proc_pid_stat(5)
	if len(fields) <= system {
		return 0
	}
	var ticks int64
	for _, field := range fields[user : system+1] {
		n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100)
}

// private returns the memory in bytes that a process does not share with others. ok is false if the system has no /proc or no such
// process.
func private(pid int) (bytes int64, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, false
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(text), &size, &resident, &shared); err != nil {
		return 0, false
	}
	return (resident - shared) * int64(os.Getpagesize()), true
}

// closeInChildren marks all descriptors except the standard streams as close-on-exec. Go does that for those it opens, but not for
// inherited ones.
func closeInChildren() {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, entry := range list {
			if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
				syscall.CloseOnExec(fd)
			}
		}
		return
	}
}
