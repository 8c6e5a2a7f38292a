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

// headTime limits the time for receiving the request head on a spare connection, including the TLS handshake.
const headTime = time.Second

// OverBound reports whether a connection returned by Listeners is above a limit, so that its request may be refused; full reports that the
// limit on all connections is exceeded. Call it after the request head was read: it lifts the time limit of the connection.
func OverBound(c net.Conn) (over, full bool) {
	s, over := c.(*spareConn)
	if !over {
		return false, false
	}
	if s.heard.CompareAndSwap(false, true) {
		_ = s.Conn.SetReadDeadline(time.Time{}) // reading reports any error of the connection
	}
	return true, s.full
}

// spareConn is a connection above a limit. It is refused unless its request head arrives within headTime and OverBound is called.
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
		s.listener.reportRefused(s.Conn)
		s.listener.answerRefused(s.Conn, s.full)
	}
	return n, err
}

// SetDeadline implements net.Conn.
func (s *spareConn) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn. Until the request head was read, it cannot extend the deadline beyond headTime.
func (s *spareConn) SetReadDeadline(t time.Time) error {
	if !s.heard.Load() && (t.IsZero() || t.After(s.until)) {
		t = s.until
	}
	return s.Conn.SetReadDeadline(t)
}

// answerRefused sends the answer of a refused connection and reads its request: closing a connection with unread data would reset it and
// discard the answer.
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

// spare returns a connection above a limit as a spareConn, or nil if there are too many of them.
func (l *boundedListener) spare(c net.Conn, addr netip.Addr, full bool) net.Conn {
	addr = network(addr)
	if ok, _ := l.spares.enter(addr, l.cfg.Spare, (l.cfg.Spare+7)/8); !ok { // at most an eighth from one address
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
