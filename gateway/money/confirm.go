package money

import (
	"context"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// confirmTime is the time limit for the GET that checks whether a call has freed budget.
const confirmTime = 2 * time.Second

// removed checks with one GET whether a deleted resource is gone, and returns the settlement of the call. The amounts are freed if the
// resource does not exist, or is a stopped pod or an ended sandbox. Otherwise the hold stays open, and the reconciler checks the resource
// later.
func (f *Reserve) removed(ctx context.Context, ex *filter.Exchange, r *filter.Reservation) *ledger.Settlement {
	record, refusal := f.confirm(ctx, ex, f.Reader.Gets[r.ResourceKind])
	s := &ledger.Settlement{End: ledger.Commit, Kind: r.Kind, Resource: r.Resource}
	switch {
	case refusal != nil && refusal.Status == http.StatusNotFound:
		s.Gone = true
	case r.ResourceKind == operation.KindPod && record["id"] == r.Resource && catalog.PodStopped(record):
		s.Amounts = f.takes(ctx, ex, r, record, 0)
	case record["id"] == r.Resource && catalog.SandboxEnded(r.ResourceKind, record):
		s.From = endOf(record)
	default:
		return &ledger.Settlement{End: ledger.Open, ResolveWithin: f.Unresolved}
	}
	return s
}

// working returns the number of running workers of an endpoint whose maximum number of workers is being lowered. If the number is unknown,
// it returns the previous maximum.
func (f *Reserve) working(ctx context.Context, ex *filter.Exchange, r *filter.Reservation) int64 {
	if r.ResourceKind != operation.KindEndpoint || r.Current[ledger.Workers] >= r.Before[ledger.Workers] {
		return 0
	}
	answer, _ := f.confirm(ctx, ex, f.Workers)
	workers, ok := answer["workers"].([]any)
	if !ok {
		return r.Before[ledger.Workers]
	}
	return int64(len(workers))
}

// confirm reads the resource after the platform has responded to the call. It returns the record or the refusal, or neither if the platform
// did not respond to the read.
func (f *Reserve) confirm(ctx context.Context, ex *filter.Exchange, op *schema.Operation) (map[string]any, *filter.Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	doc, refusal, err := f.Reader.Read(ctx, ex, op, ex.Params)
	ex.RecordFailure(err)
	record, _ := doc.(map[string]any)
	return record, refusal
}
