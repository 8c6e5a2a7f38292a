package filter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// maxErrorBody bounds what is read of an error answer, maxShort of one that is read
// before its head is sent, maxAnswer of one that is translated.
const (
	maxErrorBody = 64 << 10
	maxShort     = 32 << 10
	maxAnswer    = 64 << 20
)

// Dispatch sends the outbound request of an exchange to the platform. The HTTP
// door and every translated call use it; in the Envoy door, Envoy dispatches.
type Dispatch struct {
	Upstream *upstream.Client
	Recorder *telemetry.Recorder
	// Deadline bounds calls that change something: they are carried to their
	// end even when the caller has left, because the result is wanted either
	// way.
	Deadline time.Duration
	// Streams keeps the event streams that are open; required.
	Streams *Streams
}

// Do sets ex.Answer to the platform's answer. Errors and answers that are known to
// be short are read whole, so that one which breaks off can still be refused;
// others are left streaming. done releases what streaming holds and must be called
// in the end.
func (d *Dispatch) Do(ctx context.Context, ex *Exchange) (done func(), err error) {
	ctx, span := d.Recorder.Stage(ctx, "dispatch")
	defer span.End()
	cancel := func() {}
	switch {
	case ex.Operation.Mutates:
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), d.Deadline)
	case ex.Out.Stream:
		ctx, cancel = d.Streams.add(ctx, Stream{Caller: ex.Caller, Policies: ex.Event.PolicyRevision})
	}
	begin := d.Recorder.Now()
	res, err := d.Upstream.Do(ctx, upstream.Request{ //nolint:bodyclose // becomes the answer's stream, closed by the door, or is read whole below
		Org: ex.Caller.Org, Method: ex.Out.Method, Target: ex.Out.Target(), Header: ex.Out.Header, Body: ex.Out.Body, Live: ex.Out.Stream,
	})
	ex.Event.UpstreamLatency = d.Recorder.Now().Sub(begin)
	if err != nil {
		cancel()
		return nil, err
	}
	ex.Event.UpstreamStatus = res.StatusCode
	ex.Answer = &Answer{Status: res.StatusCode, Header: res.Header, Relayed: true}
	ok := res.StatusCode < http.StatusBadRequest
	if ok && (res.ContentLength < 0 || res.ContentLength > maxShort) {
		ex.Answer.Stream = res.Body
		if ex.Out.Stream {
			ex.Answer.Stream = &cuttable{res.Body, ctx}
		}
		return cancel, nil
	}
	defer cancel()
	if ok {
		ex.Answer.Body, err = readWhole(res.Body, res.ContentLength)
	} else {
		ex.Answer.Body, err = readAll(res.Body, maxErrorBody)
	}
	if err != nil && !errors.Is(err, errLong) {
		ex.Answer = nil
		return nil, fmt.Errorf("the answer's body: %w", err)
	}
	return func() {}, nil
}

var errLong = errors.New("answer too long")

// readWhole reads and closes a body of a length that is known.
func readWhole(body io.ReadCloser, length int64) ([]byte, error) {
	b := make([]byte, length)
	_, err := io.ReadFull(body, b)
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	return b, err
}

// readAll reads and closes body, at most limit bytes of it.
func readAll(body io.ReadCloser, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	if cerr := body.Close(); err == nil {
		err = cerr
	}
	if err == nil && int64(len(b)) > limit {
		return b[:limit], errLong
	}
	return b, err
}
