package filter

import (
	"context"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// LingerTimeout limits reading the response to a run after the caller has disconnected. Reading continues only if the response determines
// the cost of the run.
const LingerTimeout = 5 * time.Second

// readsAfterDisconnect reports whether the response is still read after the caller has disconnected.
func (ex *Exchange) readsAfterDisconnect(row *operation.Spec) bool {
	return ex.Cost.Reservation != nil && row.Kind == operation.KindJob && row.Synchronous && !row.Opaque
}

// outlast returns a context that is canceled, with the cause of its parent, the given time after the parent, or when leave is called. Once
// the drain time has passed, it ends together with its parent.
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

// sendWithFallback sends a request. If the platform refuses an extended body, it sends the previous body, because a refused call has not
// been carried out.
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
