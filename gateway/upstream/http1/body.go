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

// body is the body of an answer. At its end the connection returns to the pool.
type body struct {
	conn   *conn
	inner  io.Reader
	ctx    context.Context //nolint:containedctx // of the exchange, which ends with the body
	stop   func() bool
	closes bool // the connection ends with the answer
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

// finish ends the exchange with the whole answer. On a connection that was used before, an answer with more bytes after it may be the late answer
// to another request: that is an error.
func (b *body) finish() error {
	if b.conn.reused && b.conn.hasExcess() {
		b.end(false)
		return fmt.Errorf("%w: more than one came", ErrMalformed)
	}
	b.end(true)
	return nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end ends the exchange, once. The connection is kept if the answer was read to its
// end, the request was written to its end, and nothing came behind the answer.
func (b *body) end(whole bool) {
	if !b.ended.CompareAndSwap(false, true) {
		return
	}
	c := b.conn
	written := whole && !b.closes && c.waitWritten(writeGrace)
	if running := b.stop(); running && written && c.in.Buffered() == 0 {
		if c.in.Size() > bufferSize { // the head was long
			c.in = bufio.NewReaderSize(c, bufferSize)
		}
		c.t.keep(c)
		return
	}
	c.abort()
}

// waitWritten reports whether the request was written to its end, for which it waits.
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
