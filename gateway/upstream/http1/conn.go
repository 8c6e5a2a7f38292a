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
	"os"
	"sync"
	"time"
)

const (
	// bufferSize is that of the buffer a connection is read through.
	bufferSize = 4 << 10
	// writeSize is that of the buffers requests are written through: one with a body
	// that is inline leaves in one part.
	writeSize = maxInline + 4<<10
	// maxHead bounds the head of an answer: more than servers send, little enough
	// to be harmless.
	maxHead = 64 << 10
	// maxInformational is how many 1xx answers may come before the answer.
	maxInformational = 5
	// lateTimeout is how long an answer may take when the request could not be written, and how long an answer that has come waits for the goroutine
	// that writes its request.
	lateTimeout = time.Second
	// writeGrace is how long the end of an answer may wait for that of its request, which
	// has mostly come, but in another goroutine.
	writeGrace = 50 * time.Millisecond
)

// The first bytes of a server of HTTP/2 (RFC 9113, sections 3.4 and 4.1): the length of a
// frame's header, and the type of settings, its fourth byte.
const (
	frameHeader = 9
	settings    = 4
)

// conn is a connection. Between exchanges it is in the pool.
type conn struct {
	t      *Transport
	to     destination
	raw    net.Conn // that of the network
	net    net.Conn // raw, or TLS on it
	peeker *peeker
	gate   *gatedConn // what TLS reads through, nil without
	one    [1]byte
	ended  sync.Once // raw is closed
	in     *bufio.Reader
	opened time.Time
	since  time.Time // when it became idle
	reused bool

	// limit is how much more may be read, stale says that there is a deadline for the
	// head, which has come, and gone is why nothing came instead of its first byte.
	limit   int64
	stale   bool
	readErr error

	mu sync.Mutex // guards what follows, the state of an exchange
	progress
}

// gatedConne is a connection that TLS reads. Deaf, it hears nothing more. It follows the records (RFC 8446, section 5.1), so that a part of a record
// that TLS has read ahead is seen.
type gatedConn struct {
	net.Conn
	closed bool
	// header has the first bytes of a record, headed of them, until its length is known; left is how much of it is to come then.
	header    [recordHeader]byte
	headerLen int
	left      int
}

// recordHeader is the length of the header of a record of TLS.
const recordHeader = 5

// Read implements io.Reader.
func (e *gatedConn) Read(p []byte) (int, error) {
	if e.closed {
		return 0, os.ErrDeadlineExceeded // which TLS takes for temporary
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

// betweenRecords reports whether a record has ended and no other has begun.
func (e *gatedConn) betweenRecords() bool { return e.headerLen == 0 && e.left == 0 }

// progress is how far an exchange has come.
type progress struct {
	// head says that the head of the answer is still to come, bounded that there is
	// a deadline for it.
	head, bounded bool
	// wrote says that part of the request may have left, written that all has, timed
	// that there is a deadline for more of it.
	wrote, written, timed bool
	// over is closed when a long body is written or has failed; nil without one.
	over chan struct{}
	// writeErr is why the network did not take the request, broken why there was no
	// more of it.
	writeErr, bodyErr error
}

// newConn begins a connection; of TLS, there are the secured connection, and the ear
// that it reads through.
func newConn(t *Transport, to destination, raw, secure net.Conn, ear *gatedConn) *conn {
	c := &conn{t: t, to: to, raw: raw, net: secure, peeker: newPeeker(raw), gate: ear, opened: time.Now()}
	c.in = bufio.NewReaderSize(c, bufferSize)
	return c
}

// abort closes the connection, once.
func (c *conn) abort() {
	c.ended.Do(func() {
		_ = c.raw.Close() // of TLS, it would wait to say goodbye
		c.t.slots.release()
	})
}

// isIdle reports whether nothing has come on an idle connection, not even its end: to the network, or to anything between it and the buffer.
func (c *conn) isIdle() bool {
	return c.in.Buffered() == 0 && c.peeker.isIdle() && (c.gate == nil || c.gate.betweenRecords() && c.bufferEmpty())
}

// bufferEmpty reports whether TLS holds nothing that it has read ahead.
func (c *conn) bufferEmpty() bool {
	c.gate.closed = true
	n, err := c.net.Read(c.one[:])
	c.gate.closed = false
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// hasExcess reports whether more than one answer has come by the end of an answer. Of TLS, it counts the bytes that were read: those that were
// not may be an alert that ends the connection.
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

// canRetry reports whether the request that has failed may be sent again on another
// connection: this one was used before and has ended without a byte of an answer,
// and a request that the server may have seen does no harm twice.
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

// closedSilently reports whether the server closed the connection without a byte of an answer, and had chosen no protocol in the
// handshake: a server that chose HTTP/1.1 speaks it.
func (c *conn) closedSilently() bool {
	secure, ok := c.net.(*tls.Conn)
	return ok && closed(c.readErr) && secure.ConnectionState().NegotiatedProtocol == ""
}

// exchange sends a request and reads the head of its answer. The connection is
// closed on an error.
func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	c.progress, c.readErr, c.limit, c.stale = progress{head: true}, nil, maxHead, false
	stop := context.AfterFunc(req.Context(), c.abort)
	var res *http.Response
	err := c.send(req)
	if err == nil {
		res, err = c.answer(req)
	}
	if err == nil && c.premature(res) {
		err = fmt.Errorf("%w: it came before the end of its request", ErrMalformed)
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

// premature reports whether a response came before all of its request was written. An error may, since the server need not read what it
// refuses; anything else is more likely to belong to another request.
func (c *conn) premature(res *http.Response) bool {
	return res.StatusCode < http.StatusBadRequest && !c.t.Duplex && c.over != nil && !c.waitWritten(lateTimeout)
}

// explain finds the reason why an exchange has failed.
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

// send writes a request. A long body, or one whose length is not known, is written
// meanwhile by another goroutine, because the server may answer before its end.
func (c *conn) send(req *http.Request) error {
	if hasBody(req) && !inline(req) {
		if c.t.ResponseHeaderTimeout > 0 {
			_ = c.raw.SetReadDeadline(time.Time{}) // there may be one of the exchange before
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

// write writes a request and bounds the wait for its answer. The error is set if
// there is none to wait for.
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
			_ = c.raw.SetWriteDeadline(time.Time{}) // the next request may be long in coming
		}
	case c.writeErr == nil: // the body has failed
		c.bodyErr = err
		fallthrough
	case !c.wrote:
		c.abort()
		return err
	default: // the server may have answered before it stopped reading
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
	timed := wait > 0 && !first // the buffers of an idle connection take the first part
	c.wrote, c.timed = true, timed
	c.mu.Unlock()
	if timed {
		_ = c.raw.SetWriteDeadline(time.Now().Add(wait))
	}
	n, err := c.net.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if first && n == 0 && c.gate == nil { // TLS does not say what has left
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

// Read implements io.Reader for the buffer.
func (c *conn) Read(p []byte) (int, error) {
	if c.limit <= 0 {
		return 0, fmt.Errorf("%w: the head is too long", ErrMalformed)
	}
	if c.stale {
		c.stale = false
		_ = c.raw.SetReadDeadline(time.Time{})
	}
	n, err := c.net.Read(p[:min(int64(len(p)), c.limit)])
	c.limit -= int64(n)
	return n, err
}

// answer reads the head of the answer.
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
			return nil, fmt.Errorf("%w: it switches protocols", ErrMalformed)
		}
	}
	return nil, fmt.Errorf("%w: too many informational answers", ErrMalformed)
}

// checkHead waits for the whole of a head and judges it.
func (c *conn) checkHead() error {
	seen := 0
	for {
		b, _ := c.in.Peek(c.in.Buffered())
		if i := bytes.Index(b[max(0, seen-3):], []byte("\r\n\r\n")); i >= 0 {
			return checkHead(b[:max(0, seen-3)+i+4])
		}
		if bytes.Count(b, []byte("\n")) != bytes.Count(b, []byte("\r\n")) {
			return fmt.Errorf("%w: an end of a line", ErrMalformed)
		}
		switch seen = len(b); seen {
		case maxHead:
			return fmt.Errorf("%w: the head is too long", ErrMalformed)
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

// startBody begins the body of the answer, which has no bounds.
func (c *conn) startBody() {
	c.limit = math.MaxInt64
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.stale = false, c.bounded
}

// writers are buffers that requests are written through.
//
//nolint:gochecknoglobals // as the language has it
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeSize) }}

// parts are buffers that long bodies are copied through.
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
