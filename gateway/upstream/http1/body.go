package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// body is a response body. When it ends, the connection returns to the pool.
type body struct {
	conn   *conn
	inner  io.Reader
	ctx    context.Context //nolint:containedctx // of the exchange, which ends with the body
	stop   func() bool
	closes bool // the connection closes after the response
	err    error
	ended  atomic.Bool
}

var errClosed = errors.New("read of a closed body")

// Read implements io.Reader.
func (b *body) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.ended.Load() {
		return 0, errClosed
	}
	if n, err = b.inner.Read(p); err == nil {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		if ferr := b.finish(); ferr != nil {
			err = ferr
		}
	} else if b.end(false); b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	b.err = err
	return n, err
}

// finish ends the exchange after a complete response. On a reused connection, additional bytes are an error, because the response may then
// belong to another request.
func (b *body) finish() error {
	if b.conn.reused && b.conn.hasExcess() {
		b.end(false)
		return fmt.Errorf("%w: unexpected data after the response", ErrMalformed)
	}
	b.end(true)
	return nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end ends the exchange once. It keeps the connection if the request was written completely, the response was read completely, and no data
// followed the response.
func (b *body) end(whole bool) {
	if !b.ended.CompareAndSwap(false, true) {
		return
	}
	c := b.conn
	written := whole && !b.closes && c.waitWritten(writeGrace)
	if running := b.stop(); running && written && c.in.Buffered() == 0 {
		if c.in.Size() > bufferSize { // replace the larger buffer of a long head
			c.in = bufio.NewReaderSize(c, bufferSize)
		}
		c.t.release(c)
		return
	}
	c.abort()
}

// waitWritten waits until the request has been written and reports whether it was written completely.
func (c *conn) waitWritten(wait time.Duration) bool {
	if c.over != nil {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-c.over:
		case <-timer.C:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written
}
