package upstream

import (
	"context"
	"errors"
	"io"
	"time"
)

// tunnel is a connection after a protocol switch. It is closed when the context of its request ends, or when no data passes for the
// timeout.
type tunnel struct {
	io.ReadWriteCloser
	ctx     context.Context //nolint:containedctx // of the exchange, which ends with the tunnel
	cancel  context.CancelCauseFunc
	timeout time.Duration // 0 for no limit
	idle    *time.Timer
}

func newTunnel(ctx context.Context, cancel context.CancelCauseFunc, conn io.ReadWriteCloser, patience time.Duration) *tunnel {
	t := &tunnel{ReadWriteCloser: conn, ctx: ctx, cancel: cancel, timeout: patience}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	if patience > 0 {
		t.idle = time.AfterFunc(patience, func() { cancel(errStalled) })
	}
	return t
}

// Read implements io.Reader.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Read(p)
	return n, t.passed(n, err)
}

// Write implements io.Writer.
func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.ReadWriteCloser.Write(p)
	return n, t.passed(n, err)
}

// passed restarts the idle timer if n > 0 and classifies err.
func (t *tunnel) passed(n int, err error) error {
	if n > 0 && t.idle != nil && t.ctx.Err() == nil {
		t.idle.Reset(t.timeout)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return classify(t.ctx, err)
	}
	return err
}

// Close implements io.Closer.
func (t *tunnel) Close() error {
	if t.idle != nil {
		t.idle.Stop()
	}
	t.cancel(nil) // closes the connection
	return nil
}
