package filter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// maxErrorBody bounds the part read of an error answer, maxShort of one that is read
// before its head is sent, maxAnswer of one that must be seen whole.
const (
	maxErrorBody = 64 << 10
	maxShort     = 32 << 10
	maxAnswer    = 64 << 20
)

// Dispatcher is the Sender that asks the platform. The HTTP door and every
// translated call use it; in the Envoy door, Envoy sends.
type Dispatcher struct {
	Upstream *upstream.Client
	// Run is where calls of the run interface go; nil when it is not served.
	Run *upstream.Client
	// BalancedDomain is where calls of load-balanced endpoints go, likewise.
	Balanced *upstream.Client
	Recorder *telemetry.Recorder
	// Deadline bounds calls that change something: they are carried to their
	// end even when the caller has left, because the result is wanted either
	// way.
	Deadline time.Duration
	// Streams keeps the event streams and WebSockets that are open; required.
	Streams *Streams
	// WebSockets bounds how many of those are open; required with Balanced.
	WebSockets *semaphore.Weighted
	// Lists bounds the memory of lists that callers of v2 are sent; required.
	Lists *Memory
}

// Send implements Sender. Errors, answers that are known to be short and those
// that must be seen whole are read to their end, so that one which breaks off can
// still be refused; others are left streaming.
func (d *Dispatcher) Send(ctx context.Context, ex *Exchange) (done func(), err error) {
	row, _ := operation.Of(ex.Operation.ID)
	client, label := d.Upstream, ""
	switch {
	case row.Opaque:
		client, label = d.Balanced, ex.Params["id"]
	case row.Kind == operation.KindJob:
		client = d.Run
	}
	ctx, end := d.Recorder.Call(ctx, StageDispatch, ex.Out.Method, client.Host())
	status := 0
	defer func() { end(status, err) }()
	if row.Kind == operation.KindJob {
		ex.Admission.Slot.Release() // it may take its time: its body and its connection are bounded otherwise
	}
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	if ex.Out.Tunnel {
		if !d.WebSockets.TryAcquire(1) {
			return nil, problem.Overloaded.New("too many WebSockets are open").With("Retry-After", "1")
		}
		defer func() {
			if err != nil {
				d.WebSockets.Release(1)
				return
			}
			leave := done
			done = func() { leave(); d.WebSockets.Release(1) }
		}()
	}
	ctx, cancel := d.bound(ctx, ex, &row)
	d.Recorder.Inject(ctx, ex.Out.Header)
	begin := d.Recorder.Now()
	ex.MarkSent()
	res, err := sendWithFallback(ctx, client, ex, upstream.Request{
		Org: ex.Caller.Org, Method: ex.Out.Method, Target: ex.Out.Target(), Header: ex.Out.Header, Body: ex.Out.Body, Source: ex.Out.Source, Length: ex.Out.Length,
		Subdomain: label, EventStream: ex.Out.Stream && !row.Waits, Decode: row.Kind == operation.KindJob && !row.Opaque,
	})
	ex.Event.UpstreamLatency = d.Recorder.Now().Sub(begin)
	if err != nil {
		if errors.Is(err, upstream.ErrUnsent) {
			ex.Sent = NotSent
		}
		cancel()
		return nil, err
	}
	status = res.StatusCode
	ex.SetUpstreamResponse(res.StatusCode, res.Header)
	if res.StatusCode == http.StatusSwitchingProtocols {
		if err := openTunnel(ctx, ex, res.Body); err != nil {
			cancel()
			return nil, err
		}
		return cancel, nil
	}
	if (res.StatusCode < http.StatusBadRequest || row.Opaque) && !ex.Out.Buffered && (res.ContentLength < 0 || res.ContentLength > maxShort) {
		ex.Response.Stream = res.Body
		if ex.Out.Stream {
			ex.Response.Stream = &endableBody{res.Body, ctx}
		}
		return cancel, nil
	}
	defer cancel()
	if row.Resources() != "" && !ex.Progress.Nested {
		ex.limitListMemory(d.Lists)
	}
	if err := ex.readAnswer(ctx, res); err != nil {
		ex.MarkInterrupted()
		return nil, fmt.Errorf("%w: the answer's body: %w", upstream.ErrUnreachable, err)
	}
	if row.Resources() != "" {
		if err := ex.readList(ctx, client, &row); err != nil {
			return nil, err
		}
	}
	return func() {}, nil
}

// memoryFor returns the context of a call, which may outlast the context of its caller or end before it. cancel
// must be called once the answer has been read.
func (d *Dispatcher) bound(ctx context.Context, ex *Exchange, row *operation.Row) (_ context.Context, cancel context.CancelFunc) {
	leave := func() {}
	if ex.readsAfterDisconnect(row) {
		ctx, leave = d.Streams.outlast(ctx, LingerTimeout)
	}
	switch {
	case ex.Operation.Mutates && !row.Waits:
		return context.WithTimeout(context.WithoutCancel(ctx), d.Deadline)
	case ex.Out.Stream, ex.Out.Tunnel:
		stream := Stream{Caller: ex.Caller, Policies: ex.Event.PolicyRevision}
		if row.Waits && !ex.Out.Tunnel {
			stream.Policies = "" // all of it was judged when it was asked for
		}
		ctx, release := d.Streams.add(ctx, stream)
		return ctx, func() { release(); leave() }
	}
	return ctx, leave
}

// readAnswer reads the body of an answer to its end. Of an error that is longer
// than anything worth relaying, the beginning does.
func (ex *Exchange) readAnswer(ctx context.Context, res *http.Response) (err error) {
	if err := ex.waitForList(ctx, res.ContentLength); err != nil {
		_ = res.Body.Close()
		return err
	}
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		if ex.Response.Body, err = upstream.ReadAll(res.Body, maxErrorBody); errors.Is(err, upstream.ErrTooLong) {
			err = nil
		}
	case res.ContentLength >= 0 && res.ContentLength <= maxAnswer:
		ex.Response.Body, err = readWhole(res.Body, res.ContentLength)
	default:
		ex.Response.Body, err = ex.readUnknown(ctx, res.Body)
	}
	return err
}

// readWhole reads and closes a body of a length that is known.
func readWhole(body io.ReadCloser, length int64) ([]byte, error) {
	b := make([]byte, length)
	_, err := io.ReadFull(body, b)
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	return b, err
}
