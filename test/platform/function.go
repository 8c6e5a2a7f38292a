package platform

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Worker makes an emulator's workers run functions: those whose source comes with a job,
// or with a call of a load-balanced endpoint. The zero value runs none; such jobs then
// end with their input, as all others do.
//
// A function runs as a child process of the emulator's own user, in a directory of
// its own, which is removed, and with the environment of its endpoint alone. Time,
// memory, output and processes are bounded. It is not isolated beyond that: it can
// read the user's files and use the network. So this is for one's own code.
type Worker struct {
	// Python is the interpreter, by its path or its name; empty runs no function.
	Python string
	// Timeout is how long a function may take, in real time; zero is five minutes.
	// A queue's job ends by its execution timeout, if that is over first.
	Timeout time.Duration
	// Memory is how many bytes the processes of a function may hold, and how much
	// address space each; zero is 2 GiB.
	Memory int64
}

// Bounds of functions, fixed.
const (
	maxFunctions = 8       // at once
	maxProcesses = 32      // of one function
	maxPrinted   = 1 << 20 // bytes of a function's standard output and error
	maxAnswer    = 20 << 20
)

//go:embed function.py
var functionScript string

// functions runs functions for workers.
type functions struct {
	Worker
	path    string // of the interpreter
	slots   chan struct{}
	running sync.WaitGroup
}

// newFunctions returns nil for the zero Worker.
func newFunctions(w Worker) (*functions, error) {
	if w.Python == "" {
		return nil, nil
	}
	found, err := exec.LookPath(w.Python)
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if found, err = filepath.Abs(found); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if w.Timeout <= 0 {
		w.Timeout = 5 * time.Minute
	}
	if w.Memory <= 0 {
		w.Memory = 2 << 30
	}
	return &functions{Worker: w, path: found, slots: make(chan struct{}, maxFunctions)}, nil
}

// hasFunction reports whether an input carries the source of a function or a class. Endpoints deployed by the toolkit receive none: the
// input of a job then has the arguments by name (for a class also a member method), or {"__empty": true}, and the output is the value.
func hasFunction(input any) bool {
	m, _ := input.(map[string]any)
	what := "function"
	if m["execution_type"] == "class" {
		what = "class"
	}
	name, _ := m[what+"_name"].(string)
	source, _ := m[what+"_code"].(string)
	return name != "" && source != ""
}

// callResult is the answer to a function's call, as the toolkit reads it. The toolkit accepts a finished job only with workerId, delayTime
// and executionTime, polls a job that is TIMED_OUT forever, and reads all counts of workers and jobs from the health call while a job waits.
type callResult struct {
	Success    bool            `json:"success"`
	Result     *string         `json:"result,omitempty"`      // base64 of a pickle
	JSONResult json.RawMessage `json:"json_result,omitempty"` // instead of Result, for callers that asked for JSON
	Error      string          `json:"error,omitempty"`
	Stdout     string          `json:"stdout"`
	InstanceID string          `json:"instance_id,omitempty"`
}

// run calls the function of an input that has one, and waits for its end. Every fault
// is in the answer.
func (f *functions) run(ctx context.Context, input any, env map[string]string) callResult {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return callResult{Error: "the worker was stopped"}
	}
	printed := &bounded{}
	got, err := f.call(ctx, encoded(input), env, printed)
	if err != nil {
		got = callResult{Error: err.Error()}
	}
	got.Stdout = string(printed.kept)
	m, _ := input.(map[string]any)
	got.InstanceID, _ = m["instance_id"].(string)
	return got
}

// call runs the child process.
func (f *functions) call(ctx context.Context, input []byte, env map[string]string, printed *bounded) (callResult, error) {
	dir, err := os.MkdirTemp("", "tollgate-worker-")
	if err != nil {
		return callResult{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// The function's own directory is one below that of its answer.
	own, left := filepath.Join(dir, "function"), filepath.Join(dir, "answer.json")
	if err := os.Mkdir(own, 0o700); err != nil {
		return callResult{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.Timeout, fmt.Errorf("the function ran longer than %v", f.Timeout))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	printed.full = func() { stop(fmt.Errorf("the function printed more than %d bytes", maxPrinted)) }

	cmd := exec.CommandContext(ctx, f.path, "-I", "-B", "-u", "-c", functionScript,
		left, strconv.FormatInt(f.Memory, 10), strconv.Itoa(maxProcesses))
	cmd.Dir = own
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + own, "TMPDIR=" + own}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends the function's processes
	cmd.WaitDelay = 2 * time.Second
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // if it could not end them
	}
	if ctx.Err() != nil {
		return callResult{}, context.Cause(ctx)
	}
	got, fault := readAnswer(left)
	if errors.Is(fault, os.ErrNotExist) && err != nil {
		fault = fmt.Errorf("the worker could not run the function: %w", err)
	}
	return got, fault
}

// readAnswer reads the file that the child left.
func readAnswer(path string) (callResult, error) {
	file, err := os.Open(path)
	if err != nil {
		return callResult{}, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxAnswer+1))
	if err != nil {
		return callResult{}, err
	}
	if len(text) > maxAnswer {
		return callResult{}, fmt.Errorf("the function's result is larger than %d bytes", maxAnswer)
	}
	var got callResult
	if err := json.Unmarshal(text, &got); err != nil {
		return callResult{}, fmt.Errorf("the function's result: %w", err)
	}
	return got, nil
}

// bounded keeps the first maxPrinted bytes that are written to it, and calls full at the
// first after them.
type bounded struct {
	kept []byte // no bytes.Buffer, which reads past any bound
	full func()
}

func (b *bounded) Write(p []byte) (int, error) {
	left := maxPrinted - len(b.kept)
	if len(p) > left {
		b.full()
	}
	b.kept = append(b.kept, p[:min(len(p), left)]...)
	return len(p), nil
}
