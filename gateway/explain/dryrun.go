package explain

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/approval/grants"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// DryRun runs the filters of a pipeline with substitutes for all external systems, so that it has no side effects.
type DryRun struct {
	Pipeline *filter.Pipeline
	// Limiter provides the current counts of quotas, Ledger the reserved and committed amounts.
	Limiter *ratelimit.Limiter
	Ledger  *ledger.Ledger
	// Approvals provides requests for approval.
	Approvals *approval.Store
	// Reads maps operations to the operations that read the same resource. Reader executes them.
	Reads  map[string]*schema.Operation
	Reader *filter.Reader
	// Entries returns the policies enabled by an organisation. Engine evaluates them.
	Entries func(org string) []policies.Entry
	Engine  *policies.Engine
	Now     func() time.Time
	// Offline reads neither from the platform nor from the store. Facts that would have to be read are unknown.
	Offline bool
}

// errOffline is the reason why an offline run does not read.
var errOffline = errors.New("offline explanations do not read from the platform")

// Run predicts the outcome of a request by caller.
func (r *DryRun) Run(ctx context.Context, in filter.Inbound, caller *identity.Caller) *Report {
	ex, done := r.exchange(ctx, in, caller, r.ports())
	defer done()
	return r.reporter(ctx, caller).report(ex)
}

// exchange runs a request through the chain. done releases the response.
func (r *DryRun) exchange(
	ctx context.Context, in filter.Inbound, caller *identity.Caller, ports *filter.Ports,
) (ex *filter.Exchange, done func()) {
	in.Received = r.Now()
	ex = r.Pipeline.NewDryRun(in, ports, caller)
	return ex, r.Pipeline.Run(ctx, ex)
}

func (r *DryRun) reporter(ctx context.Context, caller *identity.Caller) *reporter {
	decide := func(in *policies.Input) (policies.Decision, error) { return r.Engine.Decide(ctx, caller.Org, in) }
	return &reporter{noters: r.Pipeline.Chain.Explainers(), dry: r, decide: decide}
}

// ports returns the ports for one run.
func (r *DryRun) ports() *filter.Ports {
	translators := make(map[route.Dialect]filter.Translator)
	for dialect, t := range r.Pipeline.Ports.Translators {
		translators[dialect] = t.ForDryRun(r.Offline)
	}
	ports := &filter.Ports{
		Background: r.Pipeline.Ports.Background, Counter: readOnlyCounter{r}, Shares: openShares{},
		Prices: readOnlyPrices{r.Pipeline.Ports.Prices}, ReadCache: filter.NewReadCache(r.Now), Translators: translators,
		Ledger: &dryLedger{DryRun: r}, Approvals: &grants.Grants{Store: readOnlyApprovals{r}},
		Snoozer: &ledger.Snoozer{Store: readOnlyLedger{r}},
		Sender:  &sender{DryRun: r, simulated: make(map[string]any)},
	}
	if r.Offline {
		ports.Prices = noPrices{}
	}
	return ports
}

// addSilent adds the enabled policies that produced no result.
func (r *DryRun) addSilent(caller *identity.Caller, reported []Policy) []Policy {
	out := reported
	for _, e := range r.Entries(caller.Org) {
		if slices.ContainsFunc(reported, func(p Policy) bool { return p.Policy == e.Policy }) {
			continue
		}
		p := Policy{Policy: e.Policy, Verdict: verdictPasses}
		if !e.AppliesTo(caller.Team, caller.RoleNames()) {
			p.Verdict = verdictDoesNotApply
		}
		if e.Mode != "" && e.Mode != policies.ModeEnforce {
			p.Message = "mode " + string(e.Mode)
		}
		out = append(out, p)
	}
	return out
}

// readOnlyCounter is a filter.Counter that reports the windows of each scope without counting.
type readOnlyCounter struct{ *DryRun }

// Take implements filter.Counter.
func (c readOnlyCounter) Take(ctx context.Context, t ratelimit.Take) (ratelimit.Decision, error) {
	d := ratelimit.Decision{Allowed: true}
	var states []ratelimit.WindowState
	if !c.Offline {
		var err error
		if states, err = c.Limiter.Show(ctx, t.Org); err != nil {
			return ratelimit.Decision{Allowed: true, Degraded: true, Source: "the dry run"}, nil //nolint:nilerr // the failure policy for this case does not matter here
		}
	}
	for _, s := range t.Scopes {
		for i := range ratelimit.Windows {
			limit := s.Limit.Quota(i)
			if limit <= 0 {
				continue
			}
			w := ratelimit.Window{Name: s.Ref().String() + ", " + ratelimit.WindowName(i), Limit: limit, Remaining: limit}
			for _, state := range states {
				if state.Scope == s.Ref() && state.Window == ratelimit.WindowName(i) {
					w.Remaining, w.Reset = max(0, limit-state.Used), state.Reset
				}
			}
			if c.Offline {
				w.Remaining = -1
			} else if w.Remaining < s.Units(t.Cost) {
				d.Allowed, d.RetryAfter = false, max(d.RetryAfter, w.Reset)
				d.Violated = append(d.Violated, ratelimit.Violation{Scope: s.Ref(), Window: ratelimit.WindowName(i), Name: s.WindowName(i)})
			}
			d.Windows = append(d.Windows, w)
		}
	}
	return d, nil
}

// openShares is a filter.Shares that admits every call.
type openShares struct{}

// Admit implements filter.Shares.
func (openShares) Admit(string, string, int64) (bool, time.Duration) { return true, 0 }

// Observe implements filter.Shares.
func (openShares) Observe(string, int, http.Header) {}

// readOnlyPrices is a filter.Prices that ignores simulated responses.
type readOnlyPrices struct{ filter.Prices }

// ObserveCharge implements filter.Prices.
func (readOnlyPrices) ObserveCharge(string, map[string]any) {}

// noPrices is a filter.Prices without a price list.
type noPrices struct{}

// Snapshot implements filter.Prices.
func (noPrices) Snapshot(context.Context, string) (*catalog.Snapshot, error) { return nil, nil } //nolint:nilnil // a nil Snapshot is valid and has no prices

// ObserveCharge implements filter.Prices.
func (noPrices) ObserveCharge(string, map[string]any) {}
