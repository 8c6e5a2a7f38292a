package isolate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/policies/isolate"
)

// TestMain lets the test binary be the child.
func TestMain(m *testing.M) {
	if isolate.IsChild() {
		os.Exit(isolate.Serve(context.Background(), handle))
	}
	goleak.VerifyTestMain(m)
}

// facts are what a child knows about itself.
type facts struct {
	Environment, Arguments, Descriptors []string
	Directory, Request, Input           string
}

// handle does the jobs of these tests.
func handle(_ context.Context, job string, request []byte, ready func(), input io.Reader) (answer, detail any, err error) {
	ready()
	switch job {
	case "facts":
		f := facts{Environment: os.Environ(), Arguments: os.Args[1:], Request: string(request)}
		f.Directory, _ = os.Getwd()
		list, _ := os.ReadDir("/proc/self/fd")
		for _, fd := range list {
			to, err := os.Readlink("/proc/self/fd/" + fd.Name())
			// The runtime opens a poller and the limits of processors, and this look a directory.
			if err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
				f.Descriptors = append(f.Descriptors, fd.Name())
			}
		}
		text, err := io.ReadAll(input)
		f.Input = string(text)
		return f, nil, err
	case isolate.CompileJob, "spin":
		if bytes.Contains(request, []byte("good")) {
			return nil, nil, nil
		}
		for n := 0; ; n++ {
		}
	case "hog":
		var all [][]byte
		for {
			all = append(all, bytes.Repeat([]byte{1}, 1<<20))
			if len(all) > 1<<14 {
				return len(all), nil, nil
			}
		}
	case "garbage":
		n := 0
		for range 1 << 10 {
			n += len(bytes.Repeat([]byte{1}, 1<<20))
		}
		return n, nil, nil
	case "crash":
		panic("broken")
	default:
		return nil, map[string]string{"job": job}, errors.New("no such job")
	}
}

func runner(t *testing.T, cfg isolate.Config) *isolate.Runner {
	t.Helper()
	if cfg.Command == nil {
		cfg.Command = isolate.Self
	}
	r := isolate.New(cfg)
	t.Cleanup(r.Close)
	return r
}

// A child has an empty environment and no descriptors of its parent's.
func TestChildHasNothing(t *testing.T) {
	t.Setenv("PLATFORM_KEY", "secret")
	file, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	inherit(t, file)
	var got facts
	err = runner(t, isolate.Config{}).Run(t.Context(), &isolate.Job{
		Org: "acme", Name: "facts", Deadline: time.Minute, Request: "the request",
		Input: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, "the input")
			return err
		},
	}, &got)
	want := facts{Environment: []string{}, Arguments: []string{isolate.Flag}, Directory: "/", Request: `"the request"`, Input: "the input", Descriptors: got.Descriptors}
	if len(got.Descriptors) > 0 { // a system with /proc
		want.Descriptors = []string{"0", "1", "2"}
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Whatever a job does, it ends, and the error says how.
func TestJobsEnd(t *testing.T) {
	r := runner(t, isolate.Config{Memory: 32 << 20})
	for job, want := range map[string]error{"spin": isolate.ErrDeadline, "hog": isolate.ErrMemory, "crash": isolate.ErrCrashed} {
		t.Run(job, func(t *testing.T) {
			deadline := time.Minute
			if want == isolate.ErrDeadline { //nolint:errorlint // a case of this table
				deadline = 300 * time.Millisecond
			}
			err := r.Run(t.Context(), &isolate.Job{Org: job, Name: job, Deadline: deadline}, new(any))
			if !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			if job == "crash" && !strings.Contains(fmt.Sprint(err), "broken") {
				t.Errorf("%v: does not say why", err)
			}
		})
	}
	var n int
	if err := r.Run(t.Context(), &isolate.Job{Org: "acme", Name: "garbage", Deadline: time.Minute}, &n); err != nil || n != 1<<30 {
		t.Errorf("a gigabyte of garbage: %d, %v", n, err)
	}
	err := r.Run(t.Context(), &isolate.Job{Org: "acme", Name: "other", Deadline: time.Minute}, new(any))
	f, ok := errors.AsType[*isolate.JobError](err)
	if want := `{"job":"other"}`; !ok || f.Message != "no such job" || string(f.Detail) != want {
		t.Errorf("got %v with %+v, want the job's error with %s", err, f, want)
	}
	failed := errors.New("the log cannot be read")
	err = r.Run(t.Context(), &isolate.Job{Org: "acme", Name: "facts", Deadline: time.Minute, Input: func(context.Context, io.Writer) error { return failed }}, new(any))
	if !errors.Is(err, failed) {
		t.Errorf("got %v, want the error of the input", err)
	}
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(failed)
	if err := r.Run(canceled, &isolate.Job{Org: "acme", Name: "spin", Deadline: time.Minute}, new(any)); !errors.Is(err, failed) {
		t.Errorf("got %v, want the cause of the caller's context", err)
	}
}

// Two jobs run at once, of two organisations.
func TestSlots(t *testing.T) {
	r := runner(t, isolate.Config{})
	started, release := make(chan struct{}), make(chan struct{})
	wait := func(context.Context, io.Writer) error {
		started <- struct{}{}
		<-release
		return nil
	}
	ended := make(chan error)
	job := func(org string) *isolate.Job {
		return &isolate.Job{Org: org, Name: "facts", Deadline: time.Minute, Input: wait}
	}
	run := func(org string) { ended <- r.Run(t.Context(), job(org), new(facts)) }
	go run("a")
	<-started
	if err := r.Run(t.Context(), job("a"), new(facts)); !errors.Is(err, isolate.ErrBusy) {
		t.Errorf("a second job of an organisation: %v, want %v", err, isolate.ErrBusy)
	}
	go run("b")
	<-started
	if err := r.Run(t.Context(), job("c"), new(facts)); !errors.Is(err, isolate.ErrBusy) {
		t.Errorf("a third job: %v, want %v", err, isolate.ErrBusy)
	}
	compiled := make(chan error)
	go func() { compiled <- r.Compile(t.Context(), "c", "good") }() // it waits for a slot
	close(release)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := <-compiled; err != nil {
		t.Error(err)
	}
}

// A request that has compiled is not sent to a child again. One that does not end is an error
// to all who ask, at once from then on.
func TestCompile(t *testing.T) {
	var started atomic.Int32
	r := runner(t, isolate.Config{Compile: time.Second, Command: func() *exec.Cmd {
		started.Add(1)
		return isolate.Self()
	}})
	for _, org := range []string{"a", "b", "a"} {
		if err := r.Compile(t.Context(), org, "good"); err != nil || started.Load() != 1 {
			t.Errorf("%v after %d children, want one child", err, started.Load())
		}
	}
	if !r.Compiled("good") || r.Compiled("bad") {
		t.Errorf("known %v and %v, want true and false", r.Compiled("good"), r.Compiled("bad"))
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Compile(impatient, "a", "bad"); !errors.Is(err, isolate.ErrCompiling) {
		t.Errorf("got %v, want %v", err, isolate.ErrCompiling)
	}
	<-r.CompileEnded()
	for range 2 {
		if err := r.Compile(impatient, "a", "bad"); !errors.Is(err, isolate.ErrDeadline) || started.Load() != 2 {
			t.Errorf("%v after %d children, want %v after two", err, started.Load(), isolate.ErrDeadline)
		}
	}
	if r.Compiled("bad") {
		t.Error("what does not compile is known to")
	}
}

// A Runner that is closed kills its children, and starts no more.
func TestClose(t *testing.T) {
	r := runner(t, isolate.Config{Compile: time.Minute})
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Compile(impatient, "a", "bad"); !errors.Is(err, isolate.ErrCompiling) {
		t.Fatal(err)
	}
	r.Close()
	for _, request := range []string{"bad", "good"} {
		if err := r.Compile(t.Context(), "a", request); !errors.Is(err, isolate.ErrClosed) {
			t.Errorf("%s: got %v, want %v", request, err, isolate.ErrClosed)
		}
	}
	if err := r.Run(t.Context(), &isolate.Job{Org: "a", Name: "facts", Deadline: time.Minute}, new(facts)); !errors.Is(err, isolate.ErrClosed) {
		t.Errorf("got %v, want %v", err, isolate.ErrClosed)
	}
}

// A program that cannot be started, or is no child, is a crash.
func TestWrongProgram(t *testing.T) {
	for _, cmd := range []*exec.Cmd{{Path: "/nonexistent"}, exec.CommandContext(t.Context(), "true"), exec.CommandContext(t.Context(), "echo", "ready")} {
		r := runner(t, isolate.Config{Command: func() *exec.Cmd { return cmd }})
		if err := r.Compile(t.Context(), "a", "good"); !errors.Is(err, isolate.ErrCrashed) {
			t.Errorf("%s: got %v, want %v", cmd.Path, err, isolate.ErrCrashed)
		}
	}
}
