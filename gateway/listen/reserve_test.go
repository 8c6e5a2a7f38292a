package listen_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/listen"
)

// scarce is a listener of a process with no descriptors but those that others close.
type scarce struct {
	script

	none bool // of them
}

func (s *scarce) Accept() (net.Conn, error) {
	if s.none = !s.none; s.none {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return s.script.Accept()
}

// A listener with a reserve accepts at once what fails for lack of descriptors, as often
// as it has any.
func TestReserved(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		s := &scarce{script: script{peers: []string{"1.1.1.1:1"}}}
		l := listen.NewReserved(s, n)
		c, err := l.Accept()
		if n == 0 {
			if !errors.Is(err, syscall.EMFILE) {
				t.Errorf("without a reserve: %v, want the error", err)
			}
			continue
		}
		if err != nil || c.RemoteAddr().String() != "1.1.1.1:1" {
			t.Fatalf("with a reserve of %d: %v, want the connection", n, err)
		}
		if err := errors.Join(c.Close(), l.Close()); err != nil || s.made[0].closed != 1 {
			t.Errorf("closing: %v, %d times; want once", err, s.made[0].closed)
		}
	}
}
