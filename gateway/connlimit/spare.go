package connlimit

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// headTime is how long a spare connection may take for the head of its request, a
// handshake included.
const headTime = time.Second

// spares counts the spare connections. The zero value has none.
type spares struct {
	mu    sync.Mutex // guards what follows
	total int
	open  map[netip.Addr]int // by address; none is 0
}

// enter takes one of places for an address, which has an eighth of them at most.
func (s *spares) enter(addr netip.Addr, places int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= places || s.open[addr] >= (places+7)/8 {
		return false
	}
	if s.open == nil {
		s.open = make(map[netip.Addr]int)
	}
	s.total++
	s.open[addr]++
	return true
}

func (s *spares) leave(addr netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.open[addr]--; s.open[addr] == 0 {
		delete(s.open, addr)
	}
}

// Excess reports whether a connection that a Listener returned is over a bound, full for
// the one of all addresses, so that its request may be refused. The head of the request
// has been read by then: the connection may take its time from now on.
func Excess(c net.Conn) (over, full bool) {
	s, over := c.(*spare)
	if !over {
		return false, false
	}
	if s.heard.CompareAndSwap(false, true) {
		_ = s.conn.SetReadDeadline(time.Time{}) // what is wrong with the connection, reading it tells
	}
	return true, s.full
}

// spare is a connection over a bound. Until Excess is called, it must be read to the head
// of its request within headTime; else it is refused.
type spare struct {
	conn

	full  bool
	until time.Time
	heard atomic.Bool
	// refuse answers and tells of the refusal.
	refuse func()
}

// Read implements net.Conn.
func (s *spare) Read(p []byte) (int, error) {
	n, err := s.conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && s.heard.CompareAndSwap(false, true) {
		s.refuse()
	}
	return n, err
}

// SetDeadline implements net.Conn.
func (s *spare) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn. Before the head was read none is later than its.
func (s *spare) SetReadDeadline(t time.Time) error {
	if !s.heard.Load() && (t.IsZero() || t.After(s.until)) {
		t = s.until
	}
	return s.conn.SetReadDeadline(t)
}

// say writes the answer of a refused connection, and reads its request: with that
// unread, closing would reset the connection, and its answer with it.
func (l *listener) say(c net.Conn, full bool) {
	if l.cfg.Answer == nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(answerTime))
	if _, err := c.Write(l.cfg.Answer(full)); err == nil && closeWrite(c) == nil {
		_, _ = io.CopyN(io.Discard, c, maxUnread)
	}
}

// spare returns a connection over a bound as one that is read to the head of its request,
// nil if there are too many of them.
func (l *listener) spare(c net.Conn, addr netip.Addr, full bool) net.Conn {
	addr = network(addr)
	if !l.spares.enter(addr, l.cfg.Spare) {
		return nil
	}
	s := &spare{
		conn: conn{Conn: c, leave: sync.OnceFunc(func() { l.spares.leave(addr) })},
		full: full, until: time.Now().Add(headTime),
	}
	s.refuse = func() {
		l.tell(c)
		l.say(c, full)
	}
	if err := c.SetReadDeadline(s.until); err != nil {
		_ = s.Close()
		return nil
	}
	return s
}
