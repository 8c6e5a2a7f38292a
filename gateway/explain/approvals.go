package explain

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/approval"
)

// readOnlyApprovals is a grants.Store for dry runs. It reads grants but does not use them up or request new ones.
type readOnlyApprovals struct{ *DryRun }

// Get implements grants.Store.
func (a readOnlyApprovals) Get(ctx context.Context, org, question string) (approval.Entry, error) {
	if a.Offline {
		return approval.Entry{ID: question, Now: a.Now()}, nil
	}
	return a.Approvals.Get(ctx, org, question)
}

// Swap implements grants.Store.
func (a readOnlyApprovals) Swap(_ context.Context, _ string, old approval.Entry, next *approval.Record) (approval.Entry, bool, error) {
	r := *next
	if r.State == approval.Pending {
		r.ID = "" // the request for approval is not stored
	}
	return approval.Entry{ID: old.ID, Record: &r, Now: old.Now}, true, nil
}

// ApprovalRequested implements grants.Store.
func (readOnlyApprovals) ApprovalRequested(context.Context, string, *approval.Record) {}
