package wire

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// NewListener returns a listener for an http.Server. Its connections refuse requests that parsers could interpret differently; see the
// package documentation. inner may terminate TLS. refused, if not nil, is called for each refused request, in the goroutine that serves the
// connection.
func NewListener(inner net.Listener, refused func(client net.Addr, r *Refusal)) net.Listener {
	return &listener{inner, refused}
}

type listener struct {
	net.Listener
	refused func(client net.Addr, r *Refusal)
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c, l.refused), nil
}

// conn is a connection that checks requests. Only one goroutine may read from it at a time; net/http satisfies this.
type conn struct {
	net.Conn
	report    func(client net.Addr, r *Refusal) // may be nil
	framer    framer
	deadlines readDeadlines
	// spare holds unchecked bytes that were read beyond the end of a message.
	spare []byte
	// fault is an error to which no response has been sent.
	fault *Refusal
	// refused is true after the final response was written.
	refused atomic.Bool
	// released is true if data passes unchecked.
	released bool
}

func newConn(inner net.Conn, report func(client net.Addr, r *Refusal)) *conn {
	return &conn{Conn: inner, report: report, deadlines: readDeadlines{inner: inner}}
}

// Read implements net.Conn. It never returns bytes of two messages. If it finds an error, the next call of Read writes the error response.
// This preserves the order of responses: while a handler runs, net/http reads one byte ahead, and this read must neither fail nor write,
// because the handler's response has not been sent. The next call comes from the server's main loop, after all earlier responses. Read
// delays the read ahead for a short time.
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
				c.spare = nil // idle connections keep no buffer
			}
		} else {
			n, err = c.receive(p)
		}
		from, to := c.check(p[:n])
		if to < n {
			if c.fault == nil {
				c.spare = slices.Concat(p[to:n], c.spare)
			}
			err = nil // a pending error of the inner connection will be returned again
		}
		if dropped := from == to && from > 0; dropped && c.fault == nil && err == nil {
			continue
		}
		return copy(p, p[from:to]), err
	}
}

// receive reads from the network. It delays the read ahead. If the client of a GET or HEAD request has half-closed the connection, receive
// delays the read ahead again, so that the server can respond (RFC 9112, section 9.6). For other requests, the server sees the disconnect
// immediately, because a response with a created resource must not be considered delivered.
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

// Release stops the checks on a connection that no longer carries HTTP. The handler that hijacked the connection must call Release before
// it reads. ahead is true if the client has already sent further data, although clients must wait for the response to an upgrade (RFC 6455,
// section 4.1); Release drops this data. Release does nothing if c is not a connection of this package.
func Release(c net.Conn) (ahead bool) {
	j, validated := c.(*conn)
	if !validated {
		return false
	}
	ahead = len(j.spare) > 0 || j.fault != nil
	j.released, j.spare, j.fault = true, nil, nil
	_ = j.deadlines.begin() // errors will be returned by reads
	return ahead
}

// check returns the part b[from:to] that Read may return now, and records an error found after it. Bytes before this part are dropped.
func (c *conn) check(b []byte) (from, to int) {
	from, c.fault = c.framer.leading(b)
	if c.fault != nil || from == len(b) {
		return from, from
	}
	n, fault := c.framer.scan(b[from:])
	c.fault = fault
	return from, from + n
}

// refuse ends the connection. If the error is in a request head, refuse writes the response. If the error is in a body, the handler gets
// the error.
func (c *conn) refuse() error {
	first := c.refused.CompareAndSwap(false, true)
	if first && c.report != nil {
		c.report(c.RemoteAddr(), c.fault)
	}
	if !c.framer.inHead() {
		return c.fault
	}
	if first {
		c.answer()
	}
	// The net/http server sends no response after a network read error.
	return &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: c.fault}
}

// Limits of a lingering close. The client may still send this number of bytes for this time, so that it can read the response and does not
// get a reset.
const (
	lingerBytes = 4 << 20
	lingerTime  = 500 * time.Millisecond
)

// answer writes the response for c.fault and waits until the client has received it. It ignores errors, because the connection is closed
// afterwards.
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

// Write implements net.Conn. After a request head was refused, Write returns an error, because the refusal is the final response.
func (c *conn) Write(p []byte) (int, error) {
	if c.refused.Load() && c.framer.inHead() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// CloseWrite closes the sending half of the connection. The net/http server calls it before it closes a connection whose client is still
// sending.
func (c *conn) CloseWrite() error { return CloseWrite(c.Conn) }

// CloseWrite closes the sending half of a connection. It returns errors.ErrUnsupported if c cannot do that.
func CloseWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
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
