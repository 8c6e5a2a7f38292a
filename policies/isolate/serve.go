package isolate

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// Handler does the work of a child. It decodes the request of a job, calls ready, and then does the work, for which it can read the job's
// input. If it returns an error, the child sends the error and, if it is not nil, detail.
type Handler func(ctx context.Context, job string, request []byte, ready func(), input io.Reader) (answer, detail any, err error)

// IsChild reports whether the process was started as a child.
func IsChild() bool { return len(os.Args) == 2 && os.Args[1] == Flag }

// grace is the time after its deadline at which a child exits if the parent has not killed it.
const grace = time.Second

// Serve runs the single job of a child over the standard streams and returns the exit code. The child exits soon after its parent exits,
// and soon after the job's deadline.
func Serve(ctx context.Context, handle Handler) int {
	runtime.GOMAXPROCS(1) // leave the other processors to the gateway
	// If memory runs out, the system then kills the child and not the gateway. Only Linux has this file.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	go endWith(os.Getppid())
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	var h header
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		return exitRequest
	}
	time.AfterFunc(slack*h.Deadline+grace, func() { os.Exit(exitOrphan) })
	request := make([]byte, h.Size)
	if _, err := io.ReadFull(in, request); err != nil {
		return exitRequest
	}
	ready := func() {
		debug.FreeOSMemory()
		limit(h.Memory)
		_, _ = io.WriteString(os.Stdout, readyLine) // fails if the parent has exited
	}
	answer, detail, err := handle(ctx, h.Job, request, ready, in)
	var r reply
	if err == nil {
		r.Answer, err = json.Marshal(answer)
	}
	if err != nil {
		r = reply{Error: &JobError{Message: err.Error()}}
		if detail != nil {
			r.Error.Detail, _ = json.Marshal(detail) // on error, only the message is sent
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return exitRequest
	}
	return 0
}

// Elapsed returns a channel that is closed when the process has used d of processor time from now, or when ctx ends.
func Elapsed(ctx context.Context, d time.Duration) <-chan struct{} {
	elapsed := make(chan struct{})
	end := spent() + d
	go func() {
		defer close(elapsed)
		next := time.NewTicker(measureInterval)
		defer next.Stop()
		for ctx.Err() == nil && spent() < end {
			select {
			case <-ctx.Done():
			case <-next.C:
			}
		}
	}()
	return elapsed
}

// spent returns the processor time used by the process.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// endWith exits the process after its parent has exited.
func endWith(parent int) {
	for range time.Tick(grace / 4) {
		if os.Getppid() != parent {
			os.Exit(exitOrphan)
		}
	}
}

// limit sets the garbage collector's memory limit to the current size of the process plus the given bytes. If the parent cannot
// measure the child's memory, the child exits when it exceeds the limit.
func limit(bytes int64) {
	now := taken()
	debug.SetMemoryLimit(now + bytes*3/4)
	if _, watched := private(os.Getpid()); watched {
		return
	}
	go func() {
		for range time.Tick(measureInterval) {
			if taken() > now+bytes {
				os.Exit(exitMemory)
			}
		}
	}()
}

// taken returns the memory in bytes that the Go runtime has obtained from the system.
func taken() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
