package money

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Idle implements admin.Spend.
func (l Rows) Idle(ctx context.Context, org string) (*admin.IdleList, error) {
	o, err := l.check(org)
	if err != nil {
		return nil, err
	}
	if o.Idle.For == 0 {
		return nil, row.BadRequestError{Reason: "organisation " + org + " does not look for idle resources: idle.for is not set"}
	}
	noticed, err := l.m.Notices.Noticed(ctx, org)
	if err != nil {
		return nil, err
	}
	at, list, err := o.Idle.List(noticed)
	if err != nil {
		return nil, err
	}
	state, err := l.m.Ledger.Store.Show(ctx, org)
	if err != nil {
		return nil, err
	}
	out := &admin.IdleList{At: timeOf(at), Resources: []admin.IdleResource{}}
	for _, r := range list {
		i := slices.IndexFunc(state.Resources, func(known spend.Record) bool { return known.ID == r.ID })
		if i < 0 {
			continue // it has gone since
		}
		known := &state.Resources[i]
		out.Resources = append(out.Resources, admin.IdleResource{
			ID: r.ID, Kind: r.Kind, Name: r.Name, Team: known.Owner.Team, Key: known.Owner.Key,
			Idle: admin.Idle{Reason: string(r.Reason), Since: r.Since.UTC(), PerMonth: perMonth(r.Burn), Kept: timeOf(r.Kept), StopAt: timeOf(r.StopAt)},
		})
	}
	return out, nil
}

// timeOf is nil for the zero time.
func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Keep implements admin.Spend.
func (l Rows) Keep(ctx context.Context, org, resource string, d time.Duration) (*admin.Kept, error) {
	if _, err := l.check(org); err != nil {
		return nil, err
	}
	if resource == "" || d < 0 || d > spend.MaxKeep {
		return nil, row.BadRequestError{Reason: "name a resource, and a duration of at most " + spend.MaxKeep.String()}
	}
	until, err := l.m.Keeper.Keep(ctx, org, resource, d, func(*spend.Record) error { return nil })
	if errors.Is(err, spend.ErrNoResource) {
		return nil, row.BadRequestError{Reason: "organisation " + org + " has nothing that costs money with the id \"" + resource + "\""}
	}
	if err != nil {
		return nil, err
	}
	l.m.deps.Logger.InfoContext(ctx, "a resource is kept although it is idle", "org", org, "resource", resource, "until", until)
	return &admin.Kept{Resource: resource, Until: timeOf(until)}, nil
}

// perMonth is the cost of a rate in a month, USD.
func perMonth(burn int64) string { return catalog.Monthly(catalog.Money(burn)).String() }
