package filter

import (
	"context"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// LingerTimeout is how long the platform's answer to a run is read after the caller has left, if the
// cost of the run follows from the answer.
const LingerTimeout = 5 * time.Second

// readsAfterDisconnect reports whether the answer is read after the caller has left.
func (ex *Exchange) readsAfterDisconnect(row *operation.Row) bool {
	return ex.Cost.Reservation != nil && row.Kind == operation.KindJob && row.Waits && !row.Opaque
}

// outlast returns a context that ends a time after its parent, with the cause of the parent, or
// when leave is called. When the time to drain has passed, the context ends with its parent.
func (s *Streams) outlast(parent context.Context, after time.Duration) (_ context.Context, leave context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.NewTimer(after)
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

// countAnonymousdWithFallbackluate sends a request. If the platform refuses an extended body, ask sends the previous body: a
// refused call was not carried out.
func sendWithFallback(ctx context.Context, client *upstream.Client, ex *Exchange, r upstream.Request) (*http.Response, error) {
	res, err := client.Do(ctx, r)
	plain := ex.Body.beforeExtension
	ex.Body.beforeExtension = nil // which may be large
	if err != nil || plain == nil || res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusUnprocessableEntity {
		return res, err
	}
	_, _ = upstream.ReadAll(res.Body, maxErrorBody) // so that the connection can be used again
	ex.Out.Resent, r.Body = true, nil
	if r.Source, r.Length, err = newCanonical(plain, func() {}); err != nil {
		return nil, err
	}
	return client.Do(ctx, r)
}
