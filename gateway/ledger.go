package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/once"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// idleGap is how many intervals of the reconciler may pass between two looks at what is
// idle: a change of its leader takes up to four.
const idleGap = 5

// answering is how much longer than a call of the platform may take a reservation
// can be under way.
const answering = 10 * time.Second

// newLedger makes the ledger of spending and what keeps it in line with the
// platform.
func (g *Gateway) newLedger(cfg *settings.Config) {
	self := spend.Holder{Incarnation: ulid.Make().String(), Gateway: cmp.Or(cfg.Instance, g.deps.Instance)}
	g.intents = once.NewDesk(g.scripts, cfg.Redis.Prefix.Repeats(), self.Incarnation, g.late.Go, g.deps.Logger)
	store := g.accounts
	history := &spend.History{Archive: store, Keep: cfg.Spend.History}
	alerts, passes := g.newAlerts(store, history), newPasses(g.meter(), g.deps.Now, 2*cfg.Spend.Reconcile)
	balances := newBalances(g.meter(), g.deps.Now, 2*cfg.Spend.Reconcile, g.plan)
	g.perils, g.notices, g.keeper = store.Perils, store, &spend.Keeper{Show: store.Show, Notice: store.Notice}
	images := g.newImages(store)
	remembered := images.Remember(store)
	reconciler := &spend.Reconciler{
		Store: remembered, Images: images, Repaired: passes.repaired, List: g.inventory, Get: g.resource, Claim: filter.ClaimFor(g.intents), Job: g.job, Lock: store.Lock, Logger: g.deps.Logger,
		History: history,
		Seen: func(ctx context.Context, org string, s *spend.State) {
			balances.saw(org, s)
			alerts.Look(ctx, org, s)
		},
		Bills:    &spend.Bills{Store: store, Notices: store, List: g.bills, After: cfg.Spend.Bills, Keep: cfg.Spend.History},
		Enforcer: g.newEnforcer(store, idleGap*cfg.Spend.Reconcile), Patience: cfg.Timeouts.Call + answering, Unresolved: cfg.Spend.Unresolved,
		Done: func(ctx context.Context, org string, r spend.Report) {
			before := passes.done(ctx, org, r)
			g.tellStrangers(ctx, org, r.Strangers)
			g.tellDrift(ctx, org, r.Drifted)
			g.didEnd(org, r.Ended)
			if r.Short && !before.Short {
				g.tellShort(ctx, org, &r)
			}
		},
	}
	g.books = spend.NewLoop(reconciler, cfg.Spend.Reconcile, g.budgeted, store.Leader(3*cfg.Spend.Reconcile).Lead)
	g.newOutbox(cfg, remembered, self)
	g.ledger = &spend.Ledger{Costs: spend.NewRunCosts(), Store: g.outbox, Rebuild: reconciler.Rebuild, Doubt: g.books.Kick}
	g.images = &spend.Watch{Images: images, Orgs: g.budgeted, Rebuild: reconciler.Rebuild, Interval: cfg.Spend.Reconcile, Beat: ratelimit.Beat}
}

// newOutbox makes what delivers settlements to a store.
func (g *Gateway) newOutbox(cfg *settings.Config, store spend.Store, self spend.Holder) {
	g.outbox = spend.NewOutbox(store, self)
	g.outbox.Now, g.outbox.Logger, g.outbox.Orgs, g.outbox.Doubt = g.deps.Now, g.deps.Logger, g.budgeted, g.books.Kick
	g.outbox.Released = g.didRelease
	g.outbox.Interval, g.outbox.Patience = cfg.Spend.Reconcile, cfg.Timeouts.Call+answering
	measureHolds(g.meter(), g.outbox.Status)
}

// inventory lists what an organisation has at the platform, with prices: what is
// counted and, where callers are kept apart, whatever has an owner.
func (g *Gateway) inventory(ctx context.Context, org string) ([]spend.Found, error) {
	prices, err := g.catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, err
	}
	now, kinds, plan := g.current.Load(), spend.Counts, new(spend.Plan)
	if o := now.config.Org(org); o != nil {
		plan = cmp.Or(tenants.Plan(o), plan)
		if o.Isolation.Applies() {
			kinds = operation.Owned
		}
	}
	return now.reader.Inventory(ctx, org, plan, kinds, prices)
}

// resource reads one resource of an organisation at the platform, nil if there is none.
func (g *Gateway) resource(ctx context.Context, org string, kind operation.Kind, id string) (*spend.Found, error) {
	prices, err := g.catalog.Snapshot(ctx, org)
	if err != nil {
		return nil, err
	}
	return g.current.Load().reader.Get(ctx, org, cmp.Or(g.plan(org), new(spend.Plan)), kind, id, prices)
}

// bills lists what the platform has billed an organisation, by hour.
func (g *Gateway) bills(ctx context.Context, org string, from, to time.Time) ([]spend.Bill, error) {
	return g.current.Load().reader.Bills(ctx, org, from, to)
}

// zone is when the days and months of an organisation begin.
func (g *Gateway) zone(org string) spend.Zone { return g.current.Load().zones[org] }

// job asks the platform what became of the job of a hold.
func (g *Gateway) job(ctx context.Context, org string, h *spend.Hold) (*spend.Settlement, error) {
	o, client := g.org(org), g.current.Load().runs.Client
	if o == nil || client == nil {
		return nil, nil //nolint:nilnil // nothing is known of it
	}
	return filter.JobEnd(ctx, client, agent(g.deps.Version), org, h, o.Prices.Runs.Of(h.About.Name))
}

// budgeted lists the organisations that have budgets.
func (g *Gateway) budgeted() []string {
	var ids []string
	for _, o := range g.current.Load().config.Orgs {
		if tenants.Budgeted(&o) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// ledger shows and reconciles the ledger for the admin listener.
type ledger struct{ g *Gateway }

// check refuses organisations without budgets.
func (l ledger) check(org string) (*settings.Org, error) {
	o := l.g.org(org)
	if o == nil {
		return nil, admin.ErrNoOrg
	}
	if !tenants.Budgeted(o) {
		return nil, admin.BadRequestError{Reason: "organisation " + org + " has no budgets: nothing is counted"}
	}
	return o, nil
}

// Show implements admin.Spend.
func (l ledger) Show(ctx context.Context, org string) (*admin.Ledger, error) {
	o, err := l.check(org)
	if err != nil {
		return nil, err
	}
	state, err := l.g.ledger.Store.Show(ctx, org)
	if err != nil {
		return nil, err
	}
	loss, err := spend.LastLoss(ctx, l.g.notices, org)
	if err != nil {
		return nil, err
	}
	out := &admin.Ledger{Complete: state.Complete, Loss: lossOf(loss), Scopes: []admin.Balance{}, Resources: []admin.Resource{}, Holds: []admin.Hold{}}
	outlooks, err := l.g.books.History.Outlooks(ctx, org, tenants.Plan(o), &state)
	if err != nil {
		return nil, err
	}
	for i, b := range state.Balances {
		row := admin.Balance{
			Scope: b.Scope.String(), Committed: amounts(b.Committed), Reserved: amounts(b.Reserved),
			Day: catalog.Money(b.Day).String(), Month: catalog.Money(b.Month).String(), Limits: map[string]string{}, Budgets: budgetsOf(outlooks[i].Ceilings),
		}
		for _, b := range row.Budgets {
			row.Limits[b.Name] = b.Limit
		}
		out.Scopes = append(out.Scopes, row)
	}
	for _, r := range state.Resources {
		out.Resources = append(out.Resources, admin.Resource{
			ID: r.ID, Kind: r.Kind, Name: r.About.Name, Team: r.Owner.Team, Key: r.Owner.Key, Since: r.Since.UTC(), Takes: amounts(r.Amounts), Decision: r.About.Decision,
			GPU: r.About.GPU, DataCenter: r.About.DataCenter, Labels: r.About.Labels.Map(),
		})
	}
	for i := range state.Holds {
		out.Holds = append(out.Holds, holdRow(&state.Holds[i], state.Now))
	}
	return out, nil
}

// budgetsOf says how full ceilings are.
func budgetsOf(ceilings []spend.Fullness) []admin.Budget {
	rows := make([]admin.Budget, len(ceilings))
	for i, c := range ceilings {
		text := func(n int64) string { return spend.AmountText(c.Index, n) }
		rows[i] = admin.Budget{Name: spend.CeilingName(c.Index), Limit: text(c.Limit), Used: text(c.Used), Reserved: text(c.Reserved), Left: text(c.Left())}
		if over := c.Over(); over > 0 {
			rows[i].Over = text(over)
		}
		if !c.UsedUp.IsZero() {
			rows[i].UsedUp = c.UsedUp.Format(time.DateOnly)
		}
	}
	return rows
}

// Reconcile implements admin.Spend.
func (l ledger) Reconcile(ctx context.Context, org string) (*admin.Reconciled, error) {
	if _, err := l.check(org); err != nil {
		return nil, err
	}
	r, err := l.g.books.Pass(ctx, org)
	if err != nil {
		return nil, err
	}
	return &admin.Reconciled{
		Resources: r.Resources, Adopted: r.Adopted, Removed: r.Removed, Changed: r.Changed,
		Found: r.Found, Released: r.Released, Open: r.Open, Rebuilt: r.Rebuilt,
	}, nil
}

// Adopt implements admin.Spend.
func (l ledger) Adopt(ctx context.Context, org, resource, team, key string) (*admin.Adopted, error) {
	o, err := l.check(org)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) error {
		return admin.BadRequestError{Reason: fmt.Sprintf(format, args...)}
	}
	if k := o.Key(key); k != nil {
		if team != "" && team != k.Team {
			return nil, bad("key %q is of team %q", key, k.Team)
		}
		team = k.Team
	} else if key != "" {
		return nil, bad("no key %q is configured", key)
	}
	switch {
	case resource == "" || team == "" && key == "":
		return nil, bad("name a resource, and a team or a key")
	case team != "" && !slices.ContainsFunc(o.Teams, func(t settings.Team) bool { return t.ID == team }):
		return nil, bad("no team %q is configured", team)
	}
	to := spend.Owner{Team: team, Key: key}
	was, err := l.g.books.Assign(ctx, org, resource, to)
	if errors.Is(err, spend.ErrNoResource) {
		return nil, bad("organisation %s has nothing with the id %q that has an owner", org, resource)
	}
	if err != nil {
		return nil, err
	}
	l.g.deps.Logger.InfoContext(ctx, "a resource has another owner", "org", org, "resource", resource, "was", was.String(), "owner", to.String())
	return &admin.Adopted{Resource: resource, Was: was.String(), Owner: to.String()}, nil
}

func amounts(a spend.Amounts) admin.Amounts {
	return admin.Amounts{
		PerHour: catalog.Money(a[spend.Burn]).String(), Runs: catalog.Money(a[spend.Cost]).String(), GPUs: a[spend.GPUs], Pods: a[spend.Pods], Workers: a[spend.Workers], VolumeGB: a[spend.VolumeGB],
	}
}
