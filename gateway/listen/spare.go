package listen

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// headTime is how long a spare connection may take for the head of its request, a
// handshake included.
const headTime = time.Second

// OverBound reports whether a connection that a Listener returned is over a bound, full for
// the one of all addresses, so that its request may be refused. The head of the request
// has been read by then: the connection may take its time from now on.
func OverBound(c net.Conn) (over, full bool) {
	s, over := c.(*spareConn)
	if !over {
		return false, false
	}
	if s.heard.CompareAndSwap(false, true) {
		_ = s.Conn.SetReadDeadline(time.Time{}) // what is wrong with the connection, reading it tells
	}
	return true, s.full
}

// spareConn is a connection over a bound. Until Excess is called, it must be read to the head
// of its request within headTime; else it is refused.
type spareConn struct {
	overConn

	listener *boundedListener
	full     bool
	until    time.Time
	heard    atomic.Bool
}

// Read implements net.Conn.
func (s *spareConn) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && s.heard.CompareAndSwap(false, true) {
		s.listener.tell(s.Conn)
		s.listener.answerRefused(s.Conn, s.full)
	}
	return n, err
}

// SetDeadline implements net.Conn.
func (s *spareConn) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn. Before the head was read none is later than its.
func (s *spareConn) SetReadDeadline(t time.Time) error {
	if !s.heard.Load() && (t.IsZero() || t.After(s.until)) {
		t = s.until
	}
	return s.Conn.SetReadDeadline(t)
}

// answerRefused writes the answer of a refused connection, and reads its request: with that
// unread, closing would reset the connection, and its answer with it.
func (l *boundedListener) answerRefused(c net.Conn, full bool) {
	answer := l.answer(full)
	if answer == nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(answerTime))
	if _, err := c.Write(answer); err == nil && closeWrite(c) == nil {
		_, _ = io.CopyN(io.Discard, c, maxUnread)
	}
}

func (l *boundedListener) answer(full bool) []byte {
	if full {
		return l.cfg.Full
	}
	return l.cfg.Crowded
}

// spareConn returns a connection over a bound as one that is read to the head of its request,
// nil if there are too many of them.
func (l *boundedListener) spare(c net.Conn, addr netip.Addr, full bool) net.Conn {
	addr = network(addr)
	if ok, _ := l.spares.enter(addr, l.cfg.Spare, (l.cfg.Spare+7)/8); !ok { // an eighth from one address at most
		return nil
	}
	s := &spareConn{
		overConn: overConn{wrapped: wrapped{c}, of: &l.spares, addr: addr}, listener: l, full: full, until: time.Now().Add(headTime),
	}
	if err := c.SetReadDeadline(s.until); err != nil {
		_ = s.Close()
		return nil
	}
	return s
}
