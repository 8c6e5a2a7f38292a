package http1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"time"
)

const (
	// bufferSize is the size of read buffers.
	bufferSize = 4 << 10
	// writeSize is the size of write buffers. A request with an inline body fits into one write.
	writeSize = maxInline + 4<<10
	// maxHead is the maximum size of response headers.
	maxHead = 64 << 10
	// maxInformational is the maximum number of 1xx responses.
	maxInformational = 5
	// lateTimeout is the time limit for a response if the request could not be written, and for the rest of a request whose response was
	// already received.
	lateTimeout = time.Second
	// writeGrace is the maximum time to wait, at the end of a response, for the goroutine that writes the request. It has usually finished by
	// then.
	writeGrace = 50 * time.Millisecond
)

// The first bytes from an HTTP/2 server (RFC 9113, sections 3.4 and 4.1): the length of a frame header, and the type SETTINGS in its fourth
// byte.
const (
	frameHeader = 9
	settings    = 4
)

// conn is a connection. Between exchanges it is in the pool.
type conn struct {
	t      *Transport
	to     destination
	raw    net.Conn // the network connection
	net    net.Conn // raw, or TLS over it
	peeker *peeker
	gate   *gatedConn // the connection below TLS, nil without TLS
	one    [1]byte
	ended  sync.Once // raw has been closed
	in     *bufio.Reader
	opened time.Time
	since  time.Time // start of the idle time
	reused bool

	// limit is the number of bytes that may still be read. stale is true if the deadline for response headers must be removed. readErr is the
	// error of reading the first byte.
	limit   int64
	stale   bool
	readErr error

	mu sync.Mutex // guards the fields below, the state of an exchange
	progress
}

// gatedConn is the connection below TLS. While closed is set, reads fail, so that the TLS buffer can be examined. It follows the records
// (RFC 8446, section 5.1) to detect a partial record that TLS has read ahead.
type gatedConn struct {
	net.Conn
	closed bool
	// header contains the first headerLen bytes of a record header. left is the remaining length of the record once the header is complete.
	header    [recordHeader]byte
	headerLen int
	left      int
}

// recordHeader is the length of a TLS record header.
const recordHeader = 5

// Read implements io.Reader.
func (e *gatedConn) Read(p []byte) (int, error) {
	if e.closed {
		return 0, os.ErrDeadlineExceeded // TLS treats a timeout as temporary
	}
	n, err := e.Conn.Read(p)
	e.follow(p[:n])
	return n, err
}

// follow counts bytes that were read.
func (e *gatedConn) follow(b []byte) {
	for len(b) > 0 {
		if e.left == 0 {
			n := copy(e.header[e.headerLen:], b)
			e.headerLen, b = e.headerLen+n, b[n:]
			if e.headerLen == recordHeader {
				e.headerLen, e.left = 0, int(binary.BigEndian.Uint16(e.header[3:]))
			}
			continue
		}
		n := min(e.left, len(b))
		e.left, b = e.left-n, b[n:]
	}
}

// betweenRecords reports whether the last record is complete and no other has begun.
func (e *gatedConn) betweenRecords() bool { return e.headerLen == 0 && e.left == 0 }

// progress is the progress of an exchange.
type progress struct {
	// head is true until the response headers have been received. bounded is true if they have a deadline.
	head, bounded bool
	// wrote is true if part of the request may have been sent. written is true if the whole request was sent. timed is true if there is a
	// write deadline.
	wrote, written, timed bool
	// over is closed when a long body was written or could not be written. It is nil for all other requests.
	over chan struct{}
	// writeErr is the error of writing to the network. bodyErr is the error of reading the request body.
	writeErr, bodyErr error
}

// newConn returns a connection. For TLS, secure is the TLS connection and gate the connection below it.
func newConn(t *Transport, to destination, raw, secure net.Conn, ear *gatedConn) *conn {
	c := &conn{t: t, to: to, raw: raw, net: secure, peeker: newPeeker(raw), gate: ear, opened: time.Now()}
	c.in = bufio.NewReaderSize(c, bufferSize)
	return c
}

// abort closes the connection once.
func (c *conn) abort() {
	c.ended.Do(func() {
		_ = c.raw.Close() // closing TLS would wait to send an alert
		c.t.slots.release()
	})
}

// isIdle reports whether an idle connection is open and has received no data, including data in the buffers of TLS and other layers.
func (c *conn) isIdle() bool {
	return c.in.Buffered() == 0 && c.peeker.isIdle() && (c.gate == nil || c.gate.betweenRecords() && c.bufferEmpty())
}

// bufferEmpty reports whether TLS has no buffered data.
func (c *conn) bufferEmpty() bool {
	c.gate.closed = true
	n, err := c.net.Read(c.one[:])
	c.gate.closed = false
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// hasExcess reports whether data follows a complete response. For TLS, only data that was read counts, because unread data may be a closing
// alert.
func (c *conn) hasExcess() bool {
	if c.in.Buffered() > 0 {
		return true
	}
	if c.gate == nil {
		return c.peeker.hasData()
	}
	c.gate.closed = true
	n, _ := c.net.Read(c.one[:])
	c.gate.closed = false
	return n > 0
}

// canRetry reports whether a failed request may be sent again on another connection. The connection must have been reused and have ended
// before the first byte of a response. The request must have no body, and must have a safe method or not have been sent at all.
func (c *conn) canRetry(req *http.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reused || req.Context().Err() != nil || hasBody(req) {
		return false
	}
	if c.writeErr != nil && !c.wrote {
		return true
	}
	safe := req.Method == http.MethodGet || req.Method == http.MethodHead || req.Method == http.MethodOptions
	timeout, ok := errors.AsType[net.Error](c.readErr)
	return safe && c.readErr != nil && (!ok || !timeout.Timeout())
}

// closedSilently reports whether the server closed the connection before the first byte of a response without having selected a protocol in
// the handshake. A server that selected HTTP/1.1 speaks it.
func (c *conn) closedSilently() bool {
	secure, ok := c.net.(*tls.Conn)
	return ok && closed(c.readErr) && secure.ConnectionState().NegotiatedProtocol == ""
}

// exchange sends a request and reads the response headers. On an error it closes the connection.
func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	c.progress, c.readErr, c.limit, c.stale = progress{head: true}, nil, maxHead, false
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c.net, Reused: c.reused}) // may cancel the context
	}
	if req.Context().Err() != nil {
		if c.abort(); req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, c.explain(req.Context(), nil)
	}
	stop := context.AfterFunc(req.Context(), c.abort)
	var res *http.Response
	err := c.send(req)
	if err == nil {
		res, err = c.answer(req)
	}
	if err == nil && c.premature(res) {
		err = fmt.Errorf("%w: response was received before the request was sent completely", ErrMalformed)
	}
	if err != nil {
		stop()
		c.abort()
		return nil, c.explain(req.Context(), err)
	}
	b := &body{conn: c, inner: res.Body, ctx: req.Context(), stop: stop, closes: res.Close || req.Close}
	if res.Body == http.NoBody {
		if err := b.finish(); err != nil {
			return nil, err
		}
	} else {
		res.Body = b
	}
	return res, nil
}

// premature reports whether a response must be treated as an error because it was received before its request was written completely. Such
// a response probably belongs to another request. Error responses are not premature, because a server need not read a request that it
// refuses.
func (c *conn) premature(res *http.Response) bool {
	return res.StatusCode < http.StatusBadRequest && !c.t.Duplex && c.over != nil && !c.waitWritten(lateTimeout)
}

// explain returns the reason why an exchange failed.
func (c *conn) explain(ctx context.Context, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case c.bodyErr != nil:
		err = c.bodyErr
	case c.writeErr != nil:
		err = c.writeErr
	}
	if !c.wrote {
		return fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return err
}

// send writes a request. If the body is long or its length is unknown, another goroutine writes the body, because the server may respond
// before the end of the body.
func (c *conn) send(req *http.Request) error {
	if hasBody(req) && !inline(req) {
		if c.t.ResponseHeaderTimeout > 0 {
			_ = c.raw.SetReadDeadline(time.Time{}) // left over from the previous exchange
		}
		var in *source
		if req.GetBody == nil {
			in = &source{ReadCloser: req.Body}
			out := *req
			out.Body = in
			req = &out
		}
		over := make(chan struct{})
		c.over = over
		go func() {
			defer close(over)
			_ = c.write(req, in)
		}()
		return nil
	}
	return c.write(req, nil)
}

// write writes a request and sets the deadline for its response. It returns an error if no response can follow.
func (c *conn) write(req *http.Request, in *source) error {
	out := writer(c)
	err := req.Write(out)
	if in != nil && in.err != nil {
		err = in.err
	}
	if err == nil {
		err = out.Flush()
	}
	release(out)
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := c.t.ResponseHeaderTimeout
	switch {
	case err == nil:
		c.written = true
		if c.timed {
			_ = c.raw.SetWriteDeadline(time.Time{}) // the next request may come much later
		}
	case c.writeErr == nil: // the request body failed
		c.bodyErr = err
		fallthrough
	case !c.wrote:
		c.abort()
		return err
	default: // the server may have responded before it stopped reading
		wait = lateTimeout
	}
	if c.head && wait > 0 {
		c.bounded = true
		_ = c.raw.SetReadDeadline(time.Now().Add(wait))
	}
	return nil
}

// Write implements io.Writer for requests.
func (c *conn) Write(p []byte) (int, error) {
	wait := c.t.ResponseHeaderTimeout
	c.mu.Lock()
	first := !c.wrote
	timed := wait > 0 && !first // the first part fits into the socket buffers of an idle connection
	c.wrote, c.timed = true, timed
	c.mu.Unlock()
	if timed {
		_ = c.raw.SetWriteDeadline(time.Now().Add(wait))
	}
	n, err := c.net.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if first && n == 0 && c.gate == nil { // TLS does not report the number of bytes sent
		c.wrote = false
	}
	if err != nil {
		c.writeErr = err
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom for long bodies.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	b, _ := parts.Get().(*[]byte)
	defer parts.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{c}, r, *b)
}

// Read implements io.Reader for the read buffer.
func (c *conn) Read(p []byte) (int, error) {
	if c.limit <= 0 {
		return 0, fmt.Errorf("%w: headers too long", ErrMalformed)
	}
	if c.stale {
		c.stale = false
		_ = c.raw.SetReadDeadline(time.Time{})
	}
	n, err := c.net.Read(p[:min(int64(len(p)), c.limit)])
	c.limit -= int64(n)
	return n, err
}

// answer reads the response headers.
func (c *conn) answer(req *http.Request) (*http.Response, error) {
	if _, err := c.in.Peek(1); err != nil {
		c.readErr = err
		return nil, err
	}
	if b, _ := c.in.Peek(min(c.in.Buffered(), frameHeader)); len(b) == frameHeader && b[3] == settings {
		return nil, ErrHTTP2
	}
	for range maxInformational + 1 {
		if err := c.checkHead(); err != nil {
			return nil, err
		}
		res, err := http.ReadResponse(c.in, req)
		if err != nil {
			return nil, err
		}
		if res.StatusCode >= http.StatusOK {
			c.startBody()
			return res, nil
		}
		if res.StatusCode == http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("%w: unexpected protocol switch", ErrMalformed)
		}
	}
	return nil, fmt.Errorf("%w: too many informational responses", ErrMalformed)
}

// checkHead waits for complete response headers and checks them.
func (c *conn) checkHead() error {
	seen := 0
	for {
		b, _ := c.in.Peek(c.in.Buffered())
		if i := bytes.Index(b[max(0, seen-3):], []byte("\r\n\r\n")); i >= 0 {
			return checkHead(b[:max(0, seen-3)+i+4])
		}
		if bytes.Count(b, []byte("\n")) != bytes.Count(b, []byte("\r\n")) {
			return fmt.Errorf("%w: invalid line end", ErrMalformed)
		}
		switch seen = len(b); seen {
		case maxHead:
			return fmt.Errorf("%w: headers too long", ErrMalformed)
		case bufferSize:
			c.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(b)), c), maxHead)
		}
		if _, err := c.in.Peek(seen + 1); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
}

// startBody removes the limits that apply to response headers.
func (c *conn) startBody() {
	c.limit = math.MaxInt64
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.stale = false, c.bounded
}

// writers is a pool of write buffers.
//
//nolint:gochecknoglobals // as the language has it
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeSize) }}

// parts is a pool of buffers for copying long bodies.
//
//nolint:gochecknoglobals // as the language has it
var parts = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

func writer(w io.Writer) *bufio.Writer {
	b, _ := writers.Get().(*bufio.Writer)
	b.Reset(w)
	return b
}

func release(b *bufio.Writer) {
	b.Reset(nil)
	writers.Put(b)
}
