package reverseproxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/wire"
)

// errEarlyBytes is returned if a caller sent data before it received the response to its upgrade request, which RFC 6455, section 4.1,
// forbids. The data may be another request.
var errEarlyBytes = errors.New("unexpected data after the WebSocket request")

// lingerTime is the time that a caller has to close a WebSocket after the worker has closed it.
const lingerTime = 5 * time.Second

// tunnel responds to an upgrade request and copies bytes in both directions until one side closes its connection. It returns nil if this
// side closed its connection cleanly.
func (h *Handler) tunnel(w http.ResponseWriter, ex *filter.Exchange) error {
	worker := ex.Response.Tunnel
	defer func() { _ = worker.Close() }()
	caller, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("hijack the connection: %w", err)
	}
	defer func() { _ = caller.Close() }()
	if wire.Release(caller) || buffered.Reader.Buffered() > 0 {
		return errEarlyBytes
	}
	peer := &deadlineConn{Conn: caller, patience: h.WriteTimeout}
	head := http.Response{StatusCode: ex.Response.Status, ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header, len(ex.Response.Header))}
	for name, values := range ex.Response.Header {
		head.Header[spelling(name)] = values
	}
	if err := head.Write(peer); err != nil {
		return err
	}

	type end struct {
		ofCaller bool
		err      error
	}
	ends := make(chan end, 2)
	pass := func(ofCaller bool, dst io.Writer, src io.Reader, passed *int64) {
		var err error
		*passed, err = h.pass(dst, src)
		ends <- end{ofCaller, err}
	}
	go pass(true, worker, peer, &ex.Event.BytesIn)
	go pass(false, peer, worker, &ex.Event.BytesOut)
	first := <-ends
	switch {
	case first.ofCaller:
		_ = worker.Close() // the worker cannot be half-closed
	case first.err == nil && wire.CloseWrite(caller) == nil:
		_ = caller.SetReadDeadline(time.Now().Add(lingerTime))
	default:
		_ = caller.Close()
	}
	<-ends
	return first.err
}

// pass copies from src to dst with a pooled buffer.
func (h *Handler) pass(dst io.Writer, src io.Reader) (int64, error) {
	buf := h.buffer()
	defer h.buffers.Put(buf)
	return io.CopyBuffer(onlyWriter{dst}, onlyReader{src}, *buf)
}

// onlyWriter and onlyReader hide methods that would make io.CopyBuffer bypass its buffer.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// deadlineConn is the connection to a caller. Each Write has a time limit.
type deadlineConn struct {
	net.Conn
	patience time.Duration
}

// Read implements io.Reader.
func (p *deadlineConn) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errGone, err)
	}
	return n, err
}

// Write implements io.Writer.
func (p *deadlineConn) Write(b []byte) (int, error) {
	if p.patience > 0 {
		_ = p.SetWriteDeadline(time.Now().Add(p.patience))
	}
	n, err := p.Conn.Write(b)
	if err != nil {
		err = fmt.Errorf("%w: %w", errGone, err)
	}
	return n, err
}
