package gateway

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tollgate-dev/tollgate/gateway/idempotency"
)

// repeats is a filter.Repeats.
type repeats struct {
	*idempotency.Store

	notes  backlog[idempotency.Made]
	logger *slog.Logger
}

// newRepeats returns what keeps repeats in a store, whose notes are written by late.
// They do not wait for each other: whoever is answered may send a twin at once.
func newRepeats(store *idempotency.Store, late func(f func()), logger *slog.Logger) *repeats {
	r := &repeats{Store: store, logger: logger}
	r.notes.write, r.notes.late = r.write, late
	return r
}

// Note implements filter.Repeats.
func (r *repeats) Note(org, resource, call string) {
	made := idempotency.Made{Org: org, Resource: resource, Call: call}
	if !r.notes.add(made) {
		r.unknown([]idempotency.Made{made}, errors.New("too many are to be noted"))
	}
}

func (r *repeats) write(batch []idempotency.Made) {
	ctx, cancel := context.WithTimeout(context.Background(), noteTime) //nolint:forbidigo // the note outlives its request, and depends on nothing of it
	defer cancel()
	if err := r.ClaimAll(ctx, batch); err != nil {
		r.unknown(batch, err)
	}
}

func (r *repeats) unknown(batch []idempotency.Made, err error) {
	for _, m := range batch {
		r.logger.Warn("a resource is not known to be its caller's: a lost create of its twin may be answered with it", "org", m.Org, "resource", m.Resource, "error", err.Error())
	}
}
