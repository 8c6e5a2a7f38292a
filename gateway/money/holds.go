package money

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// holdRow converts a hold for display at the time now.
func holdRow(h *ledger.Hold, now time.Time) Hold {
	row := Hold{
		ID: h.ID, State: "in_flight", Kind: h.Kind, Resource: h.Resource, Name: h.Metadata.Name, Team: h.Owner.Team, Key: h.Owner.Key,
		Gateway: h.Holder.Gateway, Since: h.At.UTC(), Age: now.Sub(h.At).Seconds(), Open: h.Open,
		Reserves: amounts(h.Amounts), Operation: h.Metadata.Operation, Decision: h.Metadata.Decision,
	}
	if h.Open {
		until := h.Until.UTC()
		row.State, row.Until = "open", &until
	}
	return row
}

// ending holds the parameters for ending a reservation.
type ending struct {
	adminapi.OrgParam

	ID     string `query:"id,required" doc:"id of the reservation"`
	Reason string `query:"reason,required" max:"500" doc:"reason to record in the audit log"`
}

// release ends a reservation without waiting for its call. It refuses a hold whose call may be in progress, because a resource created
// by that call would have no owner.
func (m *Money) release(ctx context.Context, _ adminapi.Principal, p ending) (*Hold, error) {
	org, hold := string(p.Org), p.ID
	if _, err := m.check(org); err != nil {
		return nil, err
	}
	store := m.Outbox.Store
	state, err := store.Holds(ctx, org)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(state.Holds, func(h ledger.Hold) bool { return h.ID == hold })
	if i < 0 {
		return nil, adminapi.BadRequestError{Reason: fmt.Sprintf("reservation %[2]q does not exist in organisation %[1]s", org, hold)}
	}
	h := &state.Holds[i]
	_, dead := m.deps.Intents.Dead(ctx, h.Holder.Incarnation)
	if ends := h.At.Add(m.Loop.CallTimeout); !h.Open && !dead && state.Now.Before(ends) {
		return nil, adminapi.BadRequestError{Reason: "the call of this reservation might be in progress until " + ends.UTC().Format(time.RFC3339)}
	}
	if err := store.Settle(ctx, org, &ledger.Settlement{Hold: h.ID, End: ledger.Release}); err != nil {
		return nil, err
	}
	if err := m.deps.Intents.Store().Forget(ctx, org, h.ID); err != nil {
		return nil, err
	}
	m.deps.Logger.InfoContext(ctx, "reservation released by an operator", "org", org, "hold", h.ID, "operation", h.Metadata.Operation,
		"decision", h.Metadata.Decision, "reason", p.Reason)
	row := holdRow(h, state.Now)
	return &row, nil
}
