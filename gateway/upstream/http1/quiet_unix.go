//go:build unix

package http1

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// peeker looks whether anything waits to be read on a connection.
type peeker struct {
	conn syscall.RawConn // nil for a connection that is not on a socket
	// layered is a connection that may hold bytes that it has read ahead, such as one through a proxy that speaks TLS, or one that is not on a
	// socket; nil for a socket.
	layered net.Conn
	recv    func(fd uintptr)
	n       int
	err     error
}

func newPeeker(c net.Conn) *peeker {
	p := &peeker{}
	inner := c
	for {
		over, isLayer := inner.(interface{ NetConn() net.Conn })
		if !isLayer {
			break
		}
		p.layered, inner = c, over.NetConn()
	}
	if sc, ok := inner.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			p.conn = raw
		}
	}
	if p.conn == nil {
		p.layered = c
	}
	p.recv = func(fd uintptr) {
		var b [1]byte
		p.n, _, p.err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	}
	return p
}

// isIdle reports whether the connection is open and nothing waits to be read.
// Control is used, since a deadline that has passed would hinder a read.
func (p *peeker) isIdle() bool {
	return (p.conn == nil || p.peek() && errors.Is(p.err, syscall.EAGAIN)) && (p.layered == nil || p.bufferEmpty())
}

// hasData reports whether bytes wait to be read.
func (p *peeker) hasData() bool { return p.peek() && p.err == nil && p.n > 0 }

// peek looks, and reports whether that was possible.
func (p *peeker) peek() bool { return p.conn != nil && p.conn.Control(p.recv) == nil }

// bufferEmpty reports whether a layered connection holds nothing that it has read ahead.
func (p *peeker) bufferEmpty() bool {
	if p.layered.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	var b [1]byte
	n, err := p.layered.Read(b[:])
	return p.layered.SetReadDeadline(time.Time{}) == nil && n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}
