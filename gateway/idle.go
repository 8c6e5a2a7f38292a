package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// perMonth is what a rate comes to in a month, USD.
func perMonth(burn int64) string { return catalog.Monthly(catalog.Money(burn)).String() }

// idleAlert is what receivers are told about an idle resource.
type idleAlert struct {
	ownedResource
	Reason   spend.Reason `json:"reason"`
	Since    time.Time    `json:"since"`
	PerMonth json.Number  `json:"per_month"` // USD
	// StopAt is when the pod will be stopped.
	StopAt *time.Time `json:"stop_at,omitempty"`
	// KeepURL is where people say that it is to be kept.
	KeepURL string `json:"keep_url,omitempty"`
}

func (g *Gateway) newIdleAlert(c *spend.Cause, r *spend.Record) idleAlert {
	a := idleAlert{
		ownedResource: ownedResource{c.Org, r.ID, c.Idle.Kind, c.Idle.Name, r.Owner.Team, r.Owner.Key},
		Reason:        c.Idle.Reason, Since: c.Idle.Since.UTC(), PerMonth: json.Number(perMonth(c.Idle.Burn)),
		KeepURL: g.keepLink(c.Org, r.ID),
	}
	if !c.StopAt.IsZero() {
		a.StopAt = &c.StopAt
	}
	return a
}

// Idle implements admin.Spend.
func (l ledger) Idle(ctx context.Context, org string) (*admin.IdleList, error) {
	o, err := l.check(org)
	if err != nil {
		return nil, err
	}
	if o.Idle.For == 0 {
		return nil, admin.BadRequestError{Reason: "organisation " + org + " looks for nothing that is idle: idle.for is not set"}
	}
	noticed, err := l.g.notices.Noticed(ctx, org)
	if err != nil {
		return nil, err
	}
	at, list, err := o.Idle.List(noticed)
	if err != nil {
		return nil, err
	}
	state, err := l.g.ledger.Store.Show(ctx, org)
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
			ID: r.ID, Kind: r.Kind, Name: r.Name, Team: known.Owner.Team, Key: known.Owner.Key, Reason: string(r.Reason), Since: r.Since.UTC(),
			PerMonth: perMonth(r.Burn), Kept: timeOf(r.Kept), StopAt: timeOf(r.StopAt),
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
func (l ledger) Keep(ctx context.Context, org, resource string, d time.Duration) (*admin.Kept, error) {
	if _, err := l.check(org); err != nil {
		return nil, err
	}
	if resource == "" || d < 0 || d > spend.MaxKeep {
		return nil, admin.BadRequestError{Reason: "name a resource, and a duration of at most " + spend.MaxKeep.String()}
	}
	until, err := l.g.keeper.Keep(ctx, org, resource, d, func(*spend.Record) error { return nil })
	if errors.Is(err, spend.ErrNoResource) {
		return nil, admin.BadRequestError{Reason: "organisation " + org + " has nothing that costs money with the id \"" + resource + "\""}
	}
	if err != nil {
		return nil, err
	}
	l.g.deps.Logger.InfoContext(ctx, "a resource is kept although it is idle", "org", org, "resource", resource, "until", until)
	return &admin.Kept{Resource: resource, Until: timeOf(until)}, nil
}
