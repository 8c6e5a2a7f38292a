package idempotency

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// searchExpired reports whether the search for a call's resource is over.
func (f *Deduplicator) searchExpired(age time.Duration) bool { return age > f.CallTimeout+f.Unresolved }

// deadline is when a request ends that finds out about a create: a legacy one with its
// time.
func (f *Deduplicator) deadline(ctx context.Context, ex *filter.Exchange) time.Time {
	if end, ok := ctx.Deadline(); ex.Progress.Nested && ok {
		return end
	}
	return time.Now().Add(max(f.LookupTimeout, 3*minWait))
}

// find looks once for the resource of an intent of this age, and makes it the intent's own.
// A known id decides. Otherwise it is a resource that matches the request and was not
// there before; nil means that there is nothing such.
func (f *Deduplicator) find(ctx context.Context, ex *filter.Exchange, w *filter.DedupKeys, i *filter.Intent, age time.Duration) (map[string]any, error) {
	row, _ := operation.Of(ex.Operation.ID)
	if i.Resource != "" {
		return f.get(ctx, ex, row.Kind, i.Resource)
	}
	if !hasCreationTime(row.Kind) && i.Preexisting == nil {
		return nil, nil // new ones cannot be told from old ones
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

// get reads the resource with an id. Only a 404 says that it is gone: then both results
// are nil.
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
		return nil, fmt.Errorf("%w: %s %s cannot be read", upstream.ErrUnreachable, kind.Noun(), id)
	default:
		return record, nil
	}
}

// list lists the resources there are of a kind.
func (f *Deduplicator) list(ctx context.Context, ex *filter.Exchange, kind operation.Kind) ([]upstream.Listed, error) {
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	return f.Account.Records(ctx, ex.Caller.Org, func(k operation.Kind) bool { return k == kind }, ledger.IsCounted)
}

// existing lists the resources there are of a kind that do not say when they were made,
// nil if they do or cannot be listed.
func (f *Deduplicator) existing(ctx context.Context, ex *filter.Exchange, kind operation.Kind) []string {
	if hasCreationTime(kind) {
		return nil
	}
	items, err := f.list(ctx, ex, kind)
	if err != nil {
		return nil
	}
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.ID
	}
	return ids
}

// hasCreationTime reports whether resources of a kind say when they were made.
func hasCreationTime(kind operation.Kind) bool {
	switch kind { //nolint:exhaustive // the others are not dated
	case operation.KindPod, operation.KindCluster, operation.KindEndpoint, operation.KindSecret, operation.KindSandbox:
		return true
	}
	return false
}

// claimName names a resource for claims.
func claimName(kind operation.Kind, id string) string { return string(kind) + "/" + id }

// ClaimFound gives a resource that the ledger has found to a hold's call, and reports whether it belongs to that call.
func (d *Tracker) ClaimFound(ctx context.Context, org string, f *ledger.PlatformResource, h *ledger.Hold) (bool, error) {
	w := filter.DedupKeys{Org: org, Owner: h.Owner.Key, Lookalikes: d.LookalikeKey(org, lookalikeDigest(f.Kind, h.Metadata.Name, h.Metadata.Description))}
	return d.Claim(ctx, &w, &filter.Intent{ID: h.ID, Name: h.Metadata.Name}, claimName(f.Kind, f.ID))
}
