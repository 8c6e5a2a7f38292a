package wire

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// Config configures a listener. The zero value is ready to use.
type Config struct {
	// MaxHead is the maximum size of the request line and headers in bytes; 0 means 32 KiB.
	MaxHead int
	// MaxFields is the maximum number of header lines; 0 means 100.
	MaxFields int
	// Refused, if not nil, is called for each refusal by the goroutine that serves the connection.
	Refused func(client net.Addr, r *Refusal)
}

// Defaults of Config.
const (
	defaultMaxHead   = 32 << 10
	defaultMaxFields = 100
)

// NewListener returns a listener for an http.Server. Its connections pass only requests with exactly one interpretation. inner may use TLS.
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

// conn is a connection whose requests are checked. It must be read by one goroutine at a time, as net/http does.
type conn struct {
	net.Conn
	cfg       *Config
	framer    framer
	deadlines readDeadlines
	// spare contains bytes read beyond the end of a message that have not been checked yet.
	spare []byte
	// fault is an error that was found but not yet answered.
	fault *Refusal
	// refused reports that the final response has been written.
	refused atomic.Bool
	// released reports that data is no longer checked.
	released bool
}

func newConn(inner net.Conn, cfg *Config) *conn {
	return &conn{Conn: inner, cfg: cfg, framer: framer{maxHead: cfg.MaxHead, maxFields: cfg.MaxFields}, deadlines: readDeadlines{inner: inner}}
}

// Read implements net.Conn. It never returns bytes of two messages, and it answers an error only in the call after the one that found it.
// This preserves the order of responses: while a handler runs, net/http reads one byte ahead, and that read must neither fail nor write,
// because the handler's response has not been sent yet. The read that answers comes from the server's main loop, after all earlier
// responses. The read ahead is delayed for a while.
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

// receive reads from the network. It delays the read ahead, and delays it again after the client of a GET or HEAD has half-closed the
// connection, so that the request is answered (RFC 9112, section 9.6). For other requests, the server sees the disconnect immediately,
// because resources they create must not be considered delivered.
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

// Release stops checking a connection that no longer carries HTTP. It reports whether the client has already sent further data, which is
// dropped; clients must wait for the response to an upgrade (RFC 6455, section 4.1). Release must be called by the handler that hijacked
// the connection, before it reads. Other connections are not changed.
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

// check returns the part of b that may pass now and records an error found after it. Bytes before that part are dropped.
func (c *conn) check(b []byte) (from, to int) {
	from, c.fault = c.framer.leading(b)
	if c.fault != nil || from == len(b) {
		return from, from
	}
	n, fault := c.framer.scan(b[from:])
	c.fault = fault
	return from, from + n
}

// refuse ends the connection. For an error in a head it writes the response itself. For an error in a body, the handler receives the error.
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
	// net/http adds no response of its own to network read errors.
	return &net.OpError{Op: "read", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: c.fault}
}

// Limits of a lingering close: how much data the client may still send so that it can read the response instead of getting a reset, and for
// how long.
const (
	lingerBytes = 4 << 20
	lingerTime  = 500 * time.Millisecond
)

// answer writes the refusal and waits until the client has received it. Errors are ignored, because the connection is closed anyway.
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

// Write implements net.Conn. After a refused head it fails, because the refusal is the final response.
func (c *conn) Write(p []byte) (int, error) {
	if c.refused.Load() && c.framer.inHead() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// CloseWrite closes the sending half, as net/http does before it closes a connection whose client is still sending.
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
