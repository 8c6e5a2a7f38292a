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

// Handler does the work of a child. It decodes a job's request and calls ready, and then does
// the work. It may read the job's input. detail is sent with an error; nil is nothing.
type Handler func(ctx context.Context, job string, request []byte, ready func(), input io.Reader) (answer, detail any, err error)

// IsChild reports whether the arguments of the process are those of a child.
func IsChild() bool { return len(os.Args) == 2 && os.Args[1] == Flag }

// grace is how long after the end of its time a child that was not killed ends.
const grace = time.Second

// Serve does the one job of a child over the standard streams and returns its exit code. The
// child ends soon after its parent, and soon after the job's deadline.
func Serve(ctx context.Context, handle Handler) int {
	runtime.GOMAXPROCS(1) // the gateway has the other processors
	// Where memory runs out, the system ends the child and not the gateway. Other systems have no such file.
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
		_, _ = io.WriteString(os.Stdout, readyLine) // nobody reads it if the parent has ended
	}
	answer, detail, err := handle(ctx, h.Job, request, ready, in)
	var r reply
	if err == nil {
		r.Answer, err = json.Marshal(answer)
	}
	if err != nil {
		r = reply{Error: &JobError{Message: err.Error()}}
		if detail != nil {
			r.Error.Detail, _ = json.Marshal(detail) // the message remains
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return exitRequest
	}
	return 0
}

// Elapsed returns a channel that is closed when the process has taken so much more processor
// time, or when ctx ends.
func Elapsed(ctx context.Context, d time.Duration) <-chan struct{} {
	elapsed := make(chan struct{})
	end := spent() + d
	go func() {
		defer close(elapsed)
		next := time.NewTicker(look)
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

// spent returns the processor time of the process.
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// endWith ends the process after its parent.
func endWith(parent int) {
	for range time.Tick(grace / 4) {
		if os.Getppid() != parent {
			os.Exit(exitOrphan)
		}
	}
}

// limit makes the garbage collector keep the memory of the process below its present size and
// the given bytes. Where the parent cannot read the child's memory, the child ends when it
// takes more.
func limit(bytes int64) {
	now := taken()
	debug.SetMemoryLimit(now + bytes*3/4)
	if _, watched := private(os.Getpid()); watched {
		return
	}
	go func() {
		for range time.Tick(look) {
			if taken() > now+bytes {
				os.Exit(exitMemory)
			}
		}
	}()
}

// taken returns how many bytes the Go runtime has from the system.
func taken() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
