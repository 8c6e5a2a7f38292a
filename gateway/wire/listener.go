package wire

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// Config bounds heads and tells what to do besides refusing. The zero value is
// ready to use.
type Config struct {
	// MaxHead bounds a request line with its headers, in bytes; 0 is 32 KiB.
	MaxHead int
	// MaxFields bounds the number of header lines; 0 is 100.
	MaxFields int
	// Refused is told of each refusal, from the goroutine that serves the
	// connection; it may be nil.
	Refused func(client net.Addr, r *Refusal)
}

// Defaults of Config.
const (
	defaultMaxHead   = 32 << 10
	defaultMaxFields = 100
)

// NewListener returns a listener whose connections pass only requests that
// have exactly one reading, for a server of package net/http. inner may speak TLS.
func NewListener(inner net.Listener, cfg Config) net.Listener {
	if cfg.MaxHead == 0 {
		cfg.MaxHead = defaultMaxHead
	}
	if cfg.MaxFields == 0 {
		cfg.MaxFields = defaultMaxFields
	}
	return &listener{Listener: inner, cfg: cfg}
}

type listener struct {
	net.Listener
	cfg Config
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c, &l.cfg), nil
}

// conn is one judged connection. As net/http does, it must be read by one
// goroutine at a time.
type conn struct {
	net.Conn
	cfg       *Config
	framer    framer
	deadlines readDeadlines
	// spare holds bytes read beyond the end of a message and not judged yet.
	spare []byte
	// fault is the refusal that was found and not yet answered.
	fault *Refusal
	// refused says that the last answer was written.
	refused atomic.Bool
	// released says that nothing is judged any more.
	released bool
}

func newConn(inner net.Conn, cfg *Config) *conn {
	return &conn{Conn: inner, cfg: cfg, framer: framer{maxHead: cfg.MaxHead, maxFields: cfg.MaxFields}, deadlines: readDeadlines{inner: inner}}
}

// Read implements net.Conn. No call returns bytes of two messages, and a fault
// is answered by the call after the one that found it. Both together keep the
// order of answers: while a handler works, the server of net/http reads one byte
// ahead, and that read must neither fail nor write, because the handler's answer
// is not out yet. The call that answers comes from the server's own loop, when
// every earlier answer is. The read ahead is parked for a while before it reads.
func (c *conn) Read(p []byte) (int, error) {
	if c.released {
		return c.Conn.Read(p)
	}
	if c.fault != nil {
		return 0, c.refuse()
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		var n int
		var err error
		if len(c.spare) > 0 {
			n = copy(p, c.spare)
			if c.spare = c.spare[n:]; len(c.spare) == 0 {
				c.spare = nil // an idle connection keeps no buffer
			}
		} else {
			n, err = c.receive(p)
		}
		from, to := c.check(p[:n])
		if to < n {
			if c.fault == nil {
				c.spare = slices.Concat(p[to:n], c.spare)
			}
			err = nil // an error the inner connection has left comes again
		}
		if dropped := from == to && from > 0; dropped && c.fault == nil && err == nil {
			continue
		}
		return copy(p, p[from:to]), err
	}
}

// receive reads from the network. The read ahead is parked before it reads, and again when the client of a GET or HEAD has half-closed the
// connection: its request is to be answered (RFC 9112, section 9.6). Of other requests the server learns at once that the client has left: what
// they create must not be taken for delivered.
func (c *conn) receive(p []byte) (int, error) {
	ahead := len(p) == 1 && c.framer.state == atStart
	if ahead {
		c.deadlines.park(parkDelay)
	}
	n, err := c.deadlines.read(p)
	if ahead && n == 0 && errors.Is(err, io.EOF) && c.framer.isRead() {
		c.deadlines.park(halfCloseTimeout)
		return c.deadlines.read(p)
	}
	return n, err
}

// Release lets everything that follows on a connection of a Listener pass unjudged,
// because it is not HTTP any more. It reports whether the client has sent some of
// that already, which is dropped: a client waits for the answer to its upgrade (RFC 6455,
// section 4.1). Only the handler that has hijacked the connection may call Release, before it reads;
// other connections are left as they are.
func Release(c net.Conn) (ahead bool) {
	j, judged := c.(*conn)
	if !judged {
		return false
	}
	ahead = len(j.spare) > 0 || j.fault != nil
	j.released, j.spare, j.fault = true, nil, nil
	_ = j.deadlines.begin() // what is wrong with the connection, reading it tells
	return ahead
}

// check returns the part of b that may pass now and notes a fault behind it. What is before that part is dropped.
func (c *conn) check(b []byte) (from, to int) {
	from, c.fault = c.framer.leading(b)
	if c.fault != nil || from == len(b) {
		return from, from
	}
	n, fault := c.framer.scan(b[from:])
	c.fault = fault
	return from, from + n
}

// refuse ends the connection. In a head it answers by itself, since there is no
// handler; in a body the handler gets the fault as its read error.
func (c *conn) refuse() error {
	first := c.refused.CompareAndSwap(false, true)
	if first && c.cfg.Refused != nil {
		c.cfg.Refused(c.RemoteAddr(), c.fault)
	}
	if !c.framer.inHead() {
		return c.fault
	}
	if first {
		c.answer()
	}
	// The form of a read error on the network, to which net/http adds nothing.
	return &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: c.fault}
}

// Bounds of a lingering close: the bytes that a client may still send so that it gets
// to read the answer instead of a reset, and how long all of it may take.
const (
	lingerBytes = 4 << 20
	lingerTime  = 500 * time.Millisecond
)

// answer writes the refusal and waits for the client to take it. Errors are of
// no interest: the connection is given up either way.
func (c *conn) answer() {
	now := time.Now()
	_ = c.Conn.SetDeadline(now.Add(lingerTime))
	if _, err := c.Conn.Write(c.fault.response(now)); err != nil {
		return
	}
	if c.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
}

// Write implements net.Conn. Behind a refusal of a head nothing is written any
// more: it was the last answer.
func (c *conn) Write(p []byte) (int, error) {
	if c.refused.Load() && c.framer.inHead() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// CloseWrite shuts down the sending half, as net/http does before it hangs up
// on a client that is still sending.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.deadlines.set(t) }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.deadlines.set(t), c.Conn.SetWriteDeadline(t))
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.deadlines.wake()
	return err
}
