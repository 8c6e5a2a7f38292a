//go:build unix

package http1

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// peeker checks whether unread data is available on a connection.
type peeker struct {
	conn syscall.RawConn // nil if the connection is not a socket
	// layered is a connection that may buffer data, such as TLS to a proxy, or that is not a socket. It is nil for a plain socket.
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

// isIdle reports whether the connection is open and no data is available. It uses Control, because Read would fail if a deadline has
// passed.
func (p *peeker) isIdle() bool {
	return (p.conn == nil || p.peek() && errors.Is(p.err, syscall.EAGAIN)) && (p.layered == nil || p.bufferEmpty())
}

// hasData reports whether data is available.
func (p *peeker) hasData() bool { return p.peek() && p.err == nil && p.n > 0 }

// peek checks the socket. It returns false if that is impossible.
func (p *peeker) peek() bool { return p.conn != nil && p.conn.Control(p.recv) == nil }

// bufferEmpty reports whether a layered connection has no buffered data.
func (p *peeker) bufferEmpty() bool {
	if p.layered.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	var b [1]byte
	n, err := p.layered.Read(b[:])
	return p.layered.SetReadDeadline(time.Time{}) == nil && n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}
