package idempotency

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// deadline returns the time at which a request stops searching for the resource of a call. For a legacy request, it is the deadline of the
// request.
func (f *Deduplicator) deadline(ctx context.Context, ex *filter.Exchange) time.Time {
	if end, ok := ctx.Deadline(); ex.Progress.Nested && ok {
		return end
	}
	return time.Now().Add(max(f.LookupTimeout, 3*minWait))
}

// find searches once for the resource of an intent of the given age, and claims the resource for the intent. If the resource's ID is known,
// it reads that resource. Otherwise it looks for a resource that matches the request and did not exist before. It returns nil if it finds
// no such resource.
func (f *Deduplicator) find(
	ctx context.Context, ex *filter.Exchange, w *filter.DedupKeys, i *filter.Intent, age time.Duration,
) (map[string]any, error) {
	row, _ := operation.Lookup(ex.Operation.ID)
	if i.Resource != "" {
		return f.get(ctx, ex, row.Kind, i.Resource)
	}
	if !hasCreationTime(row.Kind) && i.Preexisting == nil {
		return nil, nil // new resources cannot be distinguished from old ones
	}
	items, err := f.list(ctx, ex, row.Kind)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if slices.Contains(i.Preexisting, it.ID) || hasCreationTime(row.Kind) && it.Age < 0 ||
			!it.CreatedBy(i.ID, string(row.Kind), ledger.Metadata{Name: i.Name, Description: i.Shape}, age) {
			continue
		}
		mine, err := f.Tracker.Claim(ctx, w, i, claimName(row.Kind, it.ID))
		if err != nil {
			return nil, err
		}
		if mine {
			return it.Record, nil
		}
	}
	return nil, nil
}

// get reads the resource with the given ID. Both results are nil if the platform responds with 404; any other failure is an error.
func (f *Deduplicator) get(ctx context.Context, ex *filter.Exchange, kind operation.Kind, id string) (map[string]any, error) {
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	doc, refusal, err := f.Reader.Read(ctx, ex, f.Reader.Gets[kind], map[string]string{"id": id})
	switch record, _ := doc.(map[string]any); {
	case err != nil:
		return nil, err
	case refusal != nil && refusal.Status == http.StatusNotFound:
		return nil, nil
	case record == nil:
		return nil, fmt.Errorf("%w: cannot read %s %s", upstream.ErrUnreachable, kind.Noun(), id)
	default:
		return record, nil
	}
}

// list returns all resources of a kind.
func (f *Deduplicator) list(ctx context.Context, ex *filter.Exchange, kind operation.Kind) ([]upstream.Listed, error) {
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	return f.Account.Records(ctx, ex.Caller.Org, func(k operation.Kind) bool { return k == kind }, ledger.IsCounted)
}

// existing returns the IDs of all resources of a kind if such resources have no creation time, so that a later search recognises a new one.
// It returns nil if they have one, or if the platform key may not read the list. If the list cannot be read, it returns 503: without the
// list, a resource whose response is lost could not be found, and a repeat would create a second one.
func (f *Deduplicator) existing(ctx context.Context, ex *filter.Exchange, kind operation.Kind) ([]string, error) {
	if hasCreationTime(kind) {
		return nil, nil
	}
	items, err := f.list(ctx, ex, kind)
	switch {
	case errors.Is(err, upstream.ErrForbidden):
		return nil, nil
	case err != nil:
		return nil, problem.IdempotencyUnavailable.Newf("the list of existing %s resources cannot be read, so nothing was sent; try again",
			kind.Noun()).With("Retry-After", "1").Because(err)
	}
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.ID
	}
	return ids, nil
}

// hasCreationTime reports whether resources of a kind have a creation time.
func hasCreationTime(kind operation.Kind) bool {
	switch kind { //nolint:exhaustive // all other kinds lack a creation time
	case operation.KindPod, operation.KindCluster, operation.KindEndpoint, operation.KindSecret, operation.KindSandbox:
		return true
	}
	return false
}

// claimName returns the name of a resource in claims.
func claimName(kind operation.Kind, id string) string { return string(kind) + "/" + id }

// ClaimFound claims a resource that the ledger's reconciler has found, for the call of the hold h; see [Tracker.Claim]. It reports whether
// the claim succeeded, which means that the call created the resource.
func (d *Tracker) ClaimFound(ctx context.Context, org string, f *ledger.PlatformResource, h *ledger.Hold) (bool, error) {
	w := filter.DedupKeys{
		Org: org, Owner: h.Owner.Key,
		Lookalikes: lookalikeKey(f.Kind, h.Metadata.Name, h.Metadata.Description),
	}
	return d.Claim(ctx, &w, &filter.Intent{ID: h.ID, Name: h.Metadata.Name}, claimName(f.Kind, f.ID))
}
