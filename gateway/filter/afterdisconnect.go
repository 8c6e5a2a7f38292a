package filter

import (
	"context"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// LingerTimeout is the maximum time for which the gateway continues to read the response to a run after the caller has disconnected. The
// gateway continues only if it needs the response to determine the cost of the run.
const LingerTimeout = 5 * time.Second

// readsAfterDisconnect reports whether the gateway continues to read the response after the caller has disconnected.
func (ex *Exchange) readsAfterDisconnect(row *operation.Spec) bool {
	return ex.Cost.Reservation != nil && row.Kind == operation.KindJob && row.Synchronous && !row.Opaque
}

// outlast returns a context that stays valid for the given delay after parent is canceled. It is then canceled with context.Cause(parent).
// It is canceled earlier if leave is called. After the drain time, the delay is zero.
func (s *Streams) outlast(parent context.Context, delay time.Duration) (_ context.Context, leave context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.over:
		case <-ctx.Done():
		}
		cancel(context.Cause(parent))
	})
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// sendWithFallback sends a request. If the platform refuses a body set by ExtendBody with 400 or 422, it sends the request once more with
// the previous body. This is safe because the platform does not carry out a call that it refuses.
func sendWithFallback(ctx context.Context, client *upstream.Client, ex *Exchange, r upstream.Request) (*http.Response, error) {
	res, err := client.Do(ctx, r)
	plain := ex.Body.beforeExtension
	ex.Body.beforeExtension = nil // may be large
	if err != nil || plain == nil || res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusUnprocessableEntity {
		return res, err
	}
	_, _ = upstream.ReadAll(res.Body, maxErrorBody) // to reuse the connection
	ex.Out.Resent, r.Body = true, nil
	if r.Source, r.Length, err = newCanonical(plain, func() {}); err != nil {
		return nil, err
	}
	return client.Do(ctx, r)
}
