package redistest_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/redistest"
)

// echo returns a relay to a server that sends back what it receives.
func echo(t *testing.T) *redistest.Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return redistest.NewRelay(t, l.Addr().String())
}

// call sends "abcdef" through a relay and returns what comes back, until there are six bytes or the connection ends.
func call(t *testing.T, r *redistest.Relay) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, "abcdef"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 6)
	n, err := io.ReadFull(c, b)
	return string(b[:n]), err
}

func TestRelayFaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault redistest.Fault
		got   string
		err   error
	}{
		"late":                    {redistest.Fault{Latency: 2 * time.Millisecond, Jitter: time.Millisecond}, "abcdef", nil},
		"requests late":           {redistest.Fault{Latency: time.Millisecond, Requests: true}, "abcdef", nil},
		"three bytes":             {redistest.Fault{Bytes: 3}, "abc", io.ErrUnexpectedEOF},
		"dropped":                 {redistest.Fault{Drop: true, End: time.Millisecond}, "", io.EOF},
		"dropped and reset":       {redistest.Fault{Drop: true, End: time.Millisecond, Reset: true}, "", syscall.ECONNRESET},
		"dropped for almost none": {redistest.Fault{Drop: true, Share: 1e-300}, "abcdef", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := echo(t)
			remove := r.Fail(tt.fault)
			if got, err := call(t, r); got != tt.got || !errors.Is(err, tt.err) {
				t.Errorf("got %q and %v, want %q and %v", got, err, tt.got, tt.err)
			}
			remove()
			if got, err := call(t, r); got != "abcdef" || err != nil {
				t.Errorf("after the fault: %q and %v", got, err)
			}
		})
	}
}

// A connection that has lost data does not outlive the fault.
func TestRelayEndsWhatHasLostData(t *testing.T) {
	t.Parallel()
	r := echo(t)
	remove := r.Fail(redistest.Fault{Drop: true, Requests: true})
	time.AfterFunc(time.Millisecond, remove)
	if got, err := call(t, r); got != "" && got != "abcdef" || got == "" && !errors.Is(err, io.EOF) {
		t.Errorf("got %q and %v, want nothing and the end of the connection", got, err)
	}
}

func TestRelayStops(t *testing.T) {
	t.Parallel()
	r := echo(t)
	addr := r.Addr()
	r.Stop()
	r.Stop()
	if got, err := call(t, r); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("stopped: %q and %v, want that the connection is refused", got, err)
	}
	r.Start()
	r.Start()
	if got, err := call(t, r); got != "abcdef" || err != nil || r.Addr() != addr {
		t.Errorf("started again: %q and %v at %s, want the answer at %s", got, err, r.Addr(), addr)
	}
}
