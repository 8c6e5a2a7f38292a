package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// Each gateway announces itself every announceEvery. After a silence of announceEnds it is taken to be gone.
const announceEvery, announceEnds = 10 * time.Second, 35 * time.Second

// fleet is the gateways that share a store, as operators see them.
type fleet struct{ g *Gateway }

// self describes this gateway.
func (f fleet) self() admin.Instance {
	r := f.g.status.Report()
	return admin.Instance{Instance: f.g.name, Version: f.g.deps.Version, Revision: r.Revision, Loaded: r.Loaded.UTC(), Fault: r.Fault, At: f.g.deps.Now().UTC()}
}

// Gateways implements admin.Fleet.
func (f fleet) Gateways(ctx context.Context) ([]admin.Instance, error) {
	self := f.self()
	ctx, cancel := context.WithTimeout(ctx, f.g.current.Load().config.Limits.Timeout)
	defer cancel()
	fields, err := f.g.deps.Redis.HGetAll(ctx, f.g.started.Redis.Prefix.Running()).Result()
	var others []admin.Instance
	for name, text := range fields {
		if other := f.read(text); other != nil && name != self.Instance {
			others = append(others, *other)
		}
	}
	slices.SortFunc(others, func(a, b admin.Instance) int { return cmp.Compare(a.Instance, b.Instance) })
	return append([]admin.Instance{self}, others...), err
}

// announce announces this gateway until ctx ends. It reports no fault of the store: others do.
func (f fleet) announce(ctx context.Context) error {
	beat := time.NewTicker(announceEvery)
	defer beat.Stop()
	for {
		f.announceOnce(ctx)
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = f.g.deps.Redis.HDel(last, f.g.started.Redis.Prefix.Running(), f.g.name).Err()
			return nil
		case <-beat.C:
		}
	}
}

// announceOnce announces this gateway once, and removes the gateways that are gone.
func (f fleet) announceOnce(ctx context.Context) {
	text := telemetry.Must(json.Marshal(f.self()))
	ctx, cancel := context.WithTimeout(ctx, f.g.current.Load().config.Limits.Timeout)
	defer cancel()
	key := f.g.started.Redis.Prefix.Running()
	known, err := f.g.deps.Redis.HGetAll(ctx, key).Result()
	if err != nil {
		return
	}
	for name, text := range known {
		if f.read(text) == nil {
			_ = f.g.deps.Redis.HDel(ctx, key, name).Err()
		}
	}
	_ = f.g.deps.Redis.HSet(ctx, key, f.g.name, text).Err()
}

// read returns the announcement of another gateway, nil if it is too old.
func (f fleet) read(text string) *admin.Instance {
	var other admin.Instance
	if json.Unmarshal([]byte(text), &other) != nil || f.g.deps.Now().Sub(other.At) >= announceEnds {
		return nil
	}
	return &other
}

// mostRefused bounds how many refusals of a day are counted, the newest.
const mostRefused = 1000

// Refused implements admin.Fleet.
func (f fleet) Refused(ctx context.Context, org string) ([]admin.Refused, error) {
	y, m, day := f.g.deps.Now().In(f.g.zone(org).Location()).Date()
	list, err := decisions(f).list(ctx, explain.Query{Org: org, Refused: true, Since: time.Date(y, m, day, 0, 0, 0, 0, f.g.zone(org).Location()), Limit: mostRefused})
	var out []admin.Refused
	for i := range list {
		reason := refusedFor(&list[i])
		at := slices.IndexFunc(out, func(r admin.Refused) bool { return r.Reason == reason })
		if at < 0 {
			at, out = len(out), append(out, admin.Refused{Org: org, Reason: reason, Decision: list[i].DecisionID})
		}
		out[at].Calls++
	}
	slices.SortStableFunc(out, func(a, b admin.Refused) int { return cmp.Compare(b.Calls, a.Calls) })
	return out, err
}

// refusedFor returns the reason for a refusal: the policy, "limit", "budget", or the kind of problem.
func refusedFor(s *explain.Summary) string {
	switch kind := problem.Kind(s.Refusal); {
	case kind == problem.Forbidden && len(s.Denied) > 0:
		return "policy " + s.Denied[0]
	case kind == problem.RateLimited:
		return "limit"
	case kind == problem.BudgetExceeded:
		return "budget"
	}
	return s.Refusal
}

// list returns the exchanges that are selected, of all gateways. With an error they are those of this one.
func (d decisions) list(ctx context.Context, q explain.Query) ([]explain.Summary, error) {
	own := d.g.history.List(q)
	if d.g.archive == nil {
		return own, nil
	}
	var errs []error
	lists := [][]explain.Summary{own}
	for _, org := range d.orgs(q.Org) {
		list, err := d.g.archive.list(ctx, org, q)
		lists, errs = append(lists, list), append(errs, err)
	}
	return q.Newest(lists...), errors.Join(errs...)
}
