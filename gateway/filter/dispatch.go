package filter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// maxErrorBody is the maximum length of an error body, maxShort the maximum length of a body that is read before the headers are sent to
// the caller, and maxAnswer the maximum length of a buffered body. All are in bytes.
const (
	maxErrorBody = 64 << 10
	maxShort     = 32 << 10
	maxAnswer    = 64 << 20
)

// Dispatcher is a [Sender] that sends calls to the platform over HTTP. It sends the calls of requests received by the HTTP server, and all
// calls translated from legacy requests. Other requests received through Envoy are sent by Envoy.
type Dispatcher struct {
	Upstream *upstream.Client
	// Run is the client for the run interface, nil if it is not served.
	Run *upstream.Client
	// Balanced is the client for load-balanced endpoints, nil if they are not served.
	Balanced *upstream.Client
	Recorder *telemetry.Recorder
	// Deadline is the time limit for calls that change something. Such a call continues after the caller has disconnected, because its result
	// is needed for accounting.
	Deadline time.Duration
	// Streams tracks open event streams and WebSockets; required.
	Streams *Streams
	// WebSockets limits the number of open WebSockets; required with Balanced.
	WebSockets *overload.Pool
	// Lists limits the memory for lists sent to v2 callers; required.
	Lists *overload.Pool
}

// Send implements Sender. Send reads errors, short responses and buffered responses completely, so that the caller can still receive a
// problem if the response is interrupted. It streams all other responses.
func (d *Dispatcher) Send(ctx context.Context, ex *Exchange) (done func(), err error) {
	row, _ := operation.Lookup(ex.Operation.ID)
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
		ex.Admission.Slot.Release() // jobs may take long; other limits apply to their body and connection
	}
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	if ex.Out.Tunnel {
		if !d.WebSockets.TryAcquire(ex.Caller.Org, 1) {
			return nil, problem.Overloaded.New("too many WebSockets are open").With("Retry-After", "1")
		}
		defer func() {
			if err != nil {
				d.WebSockets.Release(ex.Caller.Org, 1)
				return
			}
			leave := done
			done = func() { leave(); d.WebSockets.Release(ex.Caller.Org, 1) }
		}()
	}
	ctx, cancel := d.bound(ctx, ex, &row)
	d.Recorder.Inject(ctx, ex.Out.Header)
	begin := d.Recorder.Now()
	ex.MarkSent()
	call := upstream.Request{
		Org: ex.Caller.Org, Method: ex.Out.Method, Target: ex.Out.Target(), Header: ex.Out.Header, Body: ex.Out.Body,
		Source: ex.Out.Source, Length: ex.Out.Length,
		Subdomain: label, EventStream: ex.Out.Stream && !row.Synchronous, Decode: row.Kind == operation.KindJob && !row.Opaque,
	}
	if ex.Idempotency != nil {
		call.Ready = ex.MaySend
	}
	res, err := sendWithFallback(ctx, client, ex, call)
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
	short := res.ContentLength >= 0 && res.ContentLength <= maxShort && ex.Out.Method != http.MethodHead // the response to a HEAD has no body
	if (res.StatusCode < http.StatusBadRequest || row.Opaque) && !ex.Out.Buffered && !short {
		ex.Response.Stream = res.Body
		if ex.Out.Stream {
			ex.Response.Stream = &endableBody{res.Body, ctx}
		}
		return cancel, nil
	}
	defer cancel()
	if row.ResourceList() != "" && !ex.Progress.Nested {
		ex.limitListMemory(d.Lists)
	}
	if err := ex.readAnswer(ctx, res); err != nil {
		ex.MarkInterrupted()
		return nil, fmt.Errorf("%w: response body: %w", upstream.ErrUnreachable, err)
	}
	if row.ResourceList() != "" {
		if err := ex.readList(ctx, client, &row); err != nil {
			return nil, err
		}
	}
	return func() {}, nil
}

// errPaused is the cause of the 503 for a call that is not sent.
var errPaused = errors.New("the gateway process was paused for longer than its lease")

// MaySend returns 503 if another gateway may have declared this gateway dead since the intent of the call was recorded.
func (ex *Exchange) MaySend() error {
	if o := ex.Idempotency; o != nil && o.Recorded && !ex.Ports.Intents.MaySend(o.Intent.ID) {
		return problem.IdempotencyUnavailable.New("the gateway was paused for too long, so nothing was sent; try again").
			With("Retry-After", "1").Because(errPaused)
	}
	return nil
}

// bound returns the context for a call, which may be canceled earlier or later than ctx. cancel must be called after the response has been
// read.
func (d *Dispatcher) bound(ctx context.Context, ex *Exchange, row *operation.Spec) (_ context.Context, cancel context.CancelFunc) {
	leave := func() {}
	if ex.readsAfterDisconnect(row) {
		ctx, leave = d.Streams.outlast(ctx, LingerTimeout)
	}
	switch {
	case ex.Operation.Mutates && !row.Synchronous:
		return context.WithTimeout(context.WithoutCancel(ctx), d.Deadline)
	case ex.Out.Stream, ex.Out.Tunnel:
		stream := Stream{Caller: ex.Caller, Policies: ex.Event.PolicyRevision}
		if row.Synchronous && !ex.Out.Tunnel {
			stream.Policies = "" // the job was checked completely when it was submitted
		}
		ctx, release := d.Streams.add(ctx, stream)
		return ctx, func() { release(); leave() }
	}
	return ctx, leave
}

// readAnswer reads a response body completely. Error bodies are truncated to maxErrorBody.
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

// readWhole reads and closes a body of known length.
func readWhole(body io.ReadCloser, length int64) ([]byte, error) {
	b := make([]byte, length)
	_, err := io.ReadFull(body, b)
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	return b, err
}
