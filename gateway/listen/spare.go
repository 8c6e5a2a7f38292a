package listen

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// headTime is the time limit for the TLS handshake and the request head on a spare connection.
const headTime = time.Second

// OverBound reports whether a connection was accepted above a limit, so that its requests may have to be refused. full is true if the limit
// on all connections is exceeded, and false if the limit per address is exceeded. Call OverBound only after the request head was read,
// because it removes the read deadline of the connection.
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

// spareConn is a connection above a limit. It is refused if OverBound is not called within headTime, which means that no request head has
// arrived.
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

// SetReadDeadline implements net.Conn. Until OverBound is called, it does not accept deadlines later than the end of headTime.
func (s *spareConn) SetReadDeadline(t time.Time) error {
	if !s.heard.Load() && (t.IsZero() || t.After(s.until)) {
		t = s.until
	}
	return s.Conn.SetReadDeadline(t)
}

// answerRefused sends the response on a refused connection, and reads the data that the client has sent. Otherwise, closing the connection
// would reset it and discard the response.
func (l *boundedListener) answerRefused(c net.Conn, full bool) {
	answer := l.answer(full)
	if answer == nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(answerTime))
	if _, err := c.Write(answer); err == nil && wire.CloseWrite(c) == nil {
		_, _ = io.CopyN(io.Discard, c, maxUnread)
	}
}

func (l *boundedListener) answer(full bool) []byte {
	if full {
		return l.cfg.Full
	}
	return l.cfg.Crowded
}

// spare returns c as a spareConn. It returns nil if there are too many connections above a limit.
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
