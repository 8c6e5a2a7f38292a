package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// newUsage makes what notes the calls of retired interfaces.
func (g *Gateway) newUsage(prefix settings.Prefix) error {
	g.usageStore = usage.NewStore(g.deps.Redis, prefix.Usage())
	var err error
	g.usage, err = usage.NewRecorder(usage.Deps{
		Writer: g.usageStore, Now: g.deps.Now, Logger: g.deps.Logger,
		Meter: g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/translate/usage"),
	})
	return err
}

// noteUsage writes what is noted until the returned function is called, which
// waits for the last of it: requests that drain are noted too.
func (g *Gateway) noteUsage(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.usage.Run(ctx) // it returns nil
	}()
	return func() {
		cancel()
		<-ended
	}
}

// legacyCalls reports who calls the retired interfaces for the admin listener.
type legacyCalls struct{ g *Gateway }

// Calls implements admin.Legacy.
func (l legacyCalls) Calls(ctx context.Context, org string) ([]admin.LegacyCall, error) {
	state := l.g.current.Load()
	known := orgs(state.config)
	if org != "" {
		if !slices.Contains(known, org) {
			return nil, admin.ErrNoOrg
		}
		known = []string{org}
	}
	// What this gateway noted a moment ago is shown too.
	if err := l.g.usage.Flush(ctx); err != nil {
		return nil, err
	}
	calls := []admin.LegacyCall{}
	for _, id := range known {
		rows, err := l.g.usageStore.Rows(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("legacy calls: %w", err)
		}
		slices.SortStableFunc(rows, func(a, b usage.Row) int { return cmp.Compare(b.Count, a.Count) })
		for _, r := range rows {
			calls = append(calls, admin.LegacyCall{
				Org: id, Key: r.Key, Dialect: r.Dialect, Operation: r.Operation, Agent: r.Agent,
				Count: r.Count, First: r.First, Last: r.Last, Statuses: r.Statuses,
				V2: state.successors(r.Who), Became: r.V2, Lost: r.Lost,
			})
		}
	}
	return calls, nil
}

// successors lists the v2 operations a caller should move to, never nil.
func (s *state) successors(who usage.Who) []string {
	next := graphql.Successors(who.Operation)
	if who.Dialect == string(route.V1) {
		next = s.moves[who.Operation]
	}
	if next == nil {
		return []string{}
	}
	return next
}
