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

// confirmTime bounds the GET behind an answer that promises room.
const confirmTime = 2 * time.Second

// removed settles a delete that the platform has accepted, by one GET: the room comes
// back if that is answered 404, or shows a pod that has stopped. Otherwise the hold
// stays open, and the reconciler looks further.
func (f *Reserve) removed(ctx context.Context, ex *filter.Exchange, r *filter.Reservation) *ledger.Settlement {
	record, refusal := f.confirm(ctx, ex, f.Reader.Gets[r.ResourceKind])
	s := &ledger.Settlement{End: ledger.Commit, Kind: r.Kind, Resource: r.Resource}
	switch {
	case refusal != nil && refusal.Status == http.StatusNotFound:
		s.Gone = true
	case r.ResourceKind == operation.KindPod && record["id"] == r.Resource && catalog.Stopped(record):
		s.Amounts = f.takes(ctx, ex, r, record, 0)
	case record["id"] == r.Resource && catalog.Ended(r.ResourceKind, record):
		s.From = endOf(record)
	default:
		return &ledger.Settlement{End: ledger.Open, ResolveWithin: f.Unresolved}
	}
	return s
}

// working returns how many workers an endpoint has that is to have fewer from now on.
// Those it had count until that is known.
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

// confirm reads, behind an answer, the state of the resource: its record, or the
// refusal; neither, if there was no answer.
func (f *Reserve) confirm(ctx context.Context, ex *filter.Exchange, op *schema.Operation) (map[string]any, *filter.Response) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTime)
	defer cancel()
	ex.Admission.Slot.Pause()
	defer ex.Admission.Slot.Resume()
	doc, refusal, err := f.Reader.Read(ctx, ex, op, ex.Params)
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
	record, _ := doc.(map[string]any)
	return record, refusal
}
