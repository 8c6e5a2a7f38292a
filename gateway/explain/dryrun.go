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

// DryRun runs the chain of a pipeline on ports that change nothing.
type DryRun struct {
	Pipeline *filter.Pipeline
	// Translators serve the legacy dialects and remember nothing.
	Translators map[route.Dialect]filter.Translator
	// Limiter has the counts of quotas so far, Ledger the reserved and committed amounts.
	Limiter *ratelimit.Limiter
	Ledger  *ledger.Ledger
	// Approvals keeps requests for approval.
	Approvals *approval.Store
	// Reads maps operations to those that read their object, which Reader does.
	Reads  map[string]*schema.Operation
	Reader *filter.Reader
	// Entries lists the policies an organisation has switched on; Engine asks
	// them.
	Entries func(org string) []policies.Entry
	Engine  *policies.Engine
	Now     func() time.Time
	// Offline reads nothing, neither from the platform nor from the shared store.
	// Facts that would have to be read are then unknown.
	Offline bool
}

// ErrOffline is why an offline run does not read.
var ErrOffline = errors.New("the platform is not asked in an offline explanation")

// Run reports the predicted course of a request of caller.
func (r *DryRun) Run(ctx context.Context, in filter.Inbound, caller *identity.Caller) (*Report, error) {
	ports, err := r.ports()
	if err != nil {
		return nil, err
	}
	ex, done := r.exchange(ctx, in, caller, ports)
	defer done()
	return r.reporter(ctx, caller).report(ex), nil
}

// exchange runs a request and returns how it ended; done releases what its answer
// holds.
func (r *DryRun) exchange(ctx context.Context, in filter.Inbound, caller *identity.Caller, ports *filter.Ports) (ex *filter.Exchange, done func()) {
	in.Received = r.Now()
	ex = r.Pipeline.NewDryRun(in, ports, caller)
	return ex, r.Pipeline.Run(ctx, ex)
}

func (r *DryRun) reporter(ctx context.Context, caller *identity.Caller) *reporter {
	decide := func(in *policies.Input) (policies.Decision, error) { return r.Engine.Decide(ctx, caller.Org, in) }
	return &reporter{noters: r.Pipeline.Chain.Explainers(), dry: r, decide: decide}
}

// ports are those of one run.
func (r *DryRun) ports() (*filter.Ports, error) {
	recent, err := filter.NewReadCache(r.Now)
	if err != nil {
		return nil, err
	}
	ports := &filter.Ports{
		Background: r.Pipeline.Ports.Background, Counter: readOnlyCounter{r}, Shares: openShares{}, Prices: readOnlyPrices{r.Pipeline.Ports.Prices}, ReadCache: recent, Translators: r.Translators,
		Ledger: &dryLedger{DryRun: r}, Approvals: &grants.Grants{Store: readOnlyApprovals{r}},
		Keeper: &ledger.Snoozer{Store: readOnlyLedger{r}},
		Sender: &sender{DryRun: r, simulated: make(map[string]any)},
	}
	if r.Offline {
		ports.Prices = noPrices{}
	}
	return ports, nil
}

// addSilent adds the policies of the caller's organisation that said nothing.
func (r *DryRun) addSilent(caller *identity.Caller, said []Policy) []Policy {
	out := said
	for _, e := range r.Entries(caller.Org) {
		if slices.ContainsFunc(said, func(p Policy) bool { return p.Policy == e.Policy }) {
			continue
		}
		p := Policy{Policy: e.Policy, Verdict: verdictPasses}
		if !e.Concerns(caller.Team, caller.RoleNames()) {
			p.Verdict = verdictDoesNotApply
		}
		if e.Mode != "" && e.Mode != policies.ModeEnforce {
			p.Message = "mode " + string(e.Mode)
		}
		out = append(out, p)
	}
	return out
}

// readOnlyCounter is a filter.Counter that shows each window of each scope and takes
// nothing.
type readOnlyCounter struct{ *DryRun }

// Take implements filter.Counter.
func (c readOnlyCounter) Take(ctx context.Context, t ratelimit.Take) (ratelimit.Decision, error) {
	d := ratelimit.Decision{Allowed: true}
	var states []ratelimit.WindowState
	if !c.Offline {
		var err error
		if states, err = c.Limiter.Show(ctx, t.Org); err != nil {
			return ratelimit.Decision{Allowed: true, Degraded: true, Source: "the dry run"}, nil //nolint:nilerr // what the live counter would do then is no question of this request
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
			} else if w.Remaining < max(1, t.Cost) {
				d.Allowed, d.RetryAfter = false, max(d.RetryAfter, w.Reset)
				d.Violated = append(d.Violated, ratelimit.Violation{Scope: s.Ref(), Window: ratelimit.WindowName(i)})
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

// readOnlyPrices is a filter.Prices that learns nothing from simulated responses.
type readOnlyPrices struct{ filter.Prices }

// Charged implements filter.Prices.
func (readOnlyPrices) Charged(string, map[string]any) {}

// noPrices is a filter.Prices that knows none.
type noPrices struct{}

// Snapshot implements filter.Prices.
func (noPrices) Snapshot(context.Context, string) (*catalog.Snapshot, error) { return nil, nil } //nolint:nilnil // a nil Snapshot prices nothing

// Charged implements filter.Prices.
func (noPrices) Charged(string, map[string]any) {}
