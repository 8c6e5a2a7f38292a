//go:build unix

package lean

import (
	"errors"
	"syscall"
)

// peeker looks whether anything waits to be read on a connection.
type peeker struct {
	conn syscall.RawConn // nil cannot be looked at
	look func(fd uintptr)
	err  error
}

func newPeeker(c any) *peeker {
	p := &peeker{}
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			p.conn = raw
		}
	}
	p.look = func(fd uintptr) {
		var b [1]byte
		_, _, p.err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}
	return p
}

// quiet reports whether the connection is open and nothing waits to be read.
// Control is used, since a deadline that has passed would hinder a read.
func (p *peeker) quiet() bool {
	if p.conn == nil {
		return true
	}
	if p.conn.Control(p.look) != nil {
		return false
	}
	return errors.Is(p.err, syscall.EAGAIN)
}
