package callers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// AccessDeps are the dependencies of Access.
type AccessDeps struct {
	API     *schema.API
	Catalog *catalog.Catalog
	Limiter *ratelimit.Limiter
	Ledger  ledger.Accounts
	// Engine is the policy engine of the current configuration.
	Engine *atomic.Pointer[policies.Engine]
	*view.Current
}

// Access responds to callers that ask for their own permissions: the operations that they can call, and their budgets and rate limits. To
// determine the permissions, Access evaluates the policies for each operation and for each entry of the price list. It caches the
// evaluation for ten seconds.
type Access struct {
	AccessDeps

	evaluated *lru.Cache[string, evaluation] // by organisation, team, key and roles
}

// evaluation is the result of evaluating the policies of a revision.
type evaluation struct {
	at         time.Time
	revision   string
	operations []reference.Operation
	prices     []reference.Price
}

// Lifetime and maximum number of cached evaluations, each of about 20 kB.
const (
	evaluationTTL  = 10 * time.Second
	maxEvaluations = 256
)

// NewAccess returns an Access with an empty cache.
func NewAccess(d AccessDeps) *Access {
	known, _ := lru.New[string, evaluation](maxEvaluations) // lru.New fails only for a size below 1
	return &Access{d, known}
}

// accessRoute is the id of the route that lists a caller's permissions. It requires a key; the rest of the reference does
// not.
const accessRoute = "docs.access"

// Routes returns the route on which callers query the operations, budgets and limits that apply to them.
func (g *Access) Routes() []filter.Served {
	return []filter.Served{filter.Serve(accessRoute, http.MethodGet, reference.AccessPath, g.answer)}
}

// answer responds with the caller's permissions.
func (g *Access) answer(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
	access, err := g.of(ctx, ex.Caller, ex.Tenant)
	if err != nil {
		return nil, err
	}
	return filter.JSONResponse(access)
}

// of collects the limits, budgets, policies and prices that apply to a caller.
func (g *Access) of(ctx context.Context, caller *identity.Caller, tenant *filter.Tenant) (*reference.Access, error) {
	a := &reference.Access{
		Org: caller.Org, Team: caller.Team, Key: caller.Key, Roles: caller.RoleNames(),
		Limits: g.Limits(ctx, caller, tenant), Budgets: g.Budgets(ctx, caller, tenant),
		Policies: []reference.Policy{}, Prices: []reference.Price{},
	}
	addPolicies(a, Entries(g.Config(), caller.Org))
	j, err := g.evaluate(ctx, g.Engine.Load(), a)
	a.Operations, a.Prices = j.operations, j.prices
	return a, err
}

// evaluate returns the decisions of the policies on every operation and price for a caller.
func (g *Access) evaluate(ctx context.Context, engine *policies.Engine, a *reference.Access) (j evaluation, err error) {
	j = evaluation{at: g.Now(), prices: []reference.Price{}}
	j.revision, _ = engine.Revision(a.Org)
	name := strings.Join(slices.Concat([]string{a.Org, a.Team, a.Key}, a.Roles), "\x00")
	if known, ok := g.evaluated.Get(name); ok && known.revision == j.revision && j.at.Sub(known.at) < evaluationTTL {
		return known, nil
	}
	for _, op := range g.API.Operations() {
		one, err := evaluateOperation(ctx, engine, op, a, j.at)
		if err != nil {
			return j, err
		}
		j.operations = append(j.operations, one)
	}
	if list, err := g.Catalog.Snapshot(ctx, a.Org); err == nil {
		if j.prices, err = pricesFor(ctx, engine, list, a, j.at); err != nil {
			return j, err
		}
	}
	g.evaluated.Add(name, j)
	return j, nil
}

// Limits lists the rate limit windows that apply to a caller.
func (g *Access) Limits(ctx context.Context, caller *identity.Caller, tenant *filter.Tenant) []reference.Limit {
	out := []reference.Limit{}
	counted, err := g.Limiter.Show(ctx, caller.Org)
	known := err == nil // without the store only the limits are known
	for _, s := range tenant.Scopes(caller) {
		for w := range ratelimit.Windows {
			if limit := s.Limit.Quota(w); limit > 0 {
				out = append(out, limitOf(s.Ref(), ratelimit.WindowName(w), limit, counted, known))
			}
		}
	}
	return out
}

// Budgets lists the budgets that apply to a caller.
func (g *Access) Budgets(ctx context.Context, caller *identity.Caller, tenant *filter.Tenant) []reference.Budget {
	out, plan := []reference.Budget{}, tenant.Budgets
	if plan == nil {
		return out
	}
	owner := ledger.Owner{Team: caller.Team, Key: caller.Key}
	state, err := g.Ledger.Balances(ctx, caller.Org, owner)
	known := err == nil && state.Complete // otherwise only the limits are known
	ends := g.Zone(caller.Org).Ends(g.Now())
	for i, scope := range owner.Scopes() {
		balance := ledger.Balance{Scope: scope}
		if known && i < len(state.Balances) {
			balance = state.Balances[i]
		}
		for _, c := range plan.CeilingUsage(&balance, &state) {
			text := func(n int64) string { return ledger.AmountText(c.Index, n) }
			b := reference.Budget{Scope: scope.String(), Name: ledger.CeilingName(c.Index), Limit: text(c.Limit)}
			if known {
				b.Used, b.Reserved, b.Left = text(c.Used), text(c.Reserved), text(c.Left())
			}
			if ledger.Accrues(c.Index) && c.Index != ledger.InTotal {
				b.Ends = new(ends[c.Index-ledger.PerDay])
			}
			out = append(out, b)
		}
	}
	return out
}

// limitOf returns one window with its count. Remaining is nil if the count is unknown.
func limitOf(ref ratelimit.Ref, window string, limit int64, counted []ratelimit.WindowState, known bool) reference.Limit {
	l := reference.Limit{Scope: ref.String(), Window: window, Limit: limit}
	if !known {
		return l
	}
	left := limit
	for _, s := range counted {
		if s.Scope == ref && s.Window == window {
			left, l.ResetSeconds = max(0, limit-s.Used), int64((s.Reset+time.Second-1)/time.Second)
		}
	}
	l.Remaining = &left
	return l
}

// addPolicies adds the policies that apply to a caller.
func addPolicies(a *reference.Access, entries []policies.Entry) {
	for _, e := range entries {
		if !e.AppliesTo(a.Team, a.Roles) {
			continue
		}
		p, _ := compiler.Lookup(e.Policy) // an organisation's own policy has no title
		a.Policies = append(a.Policies, reference.Policy{Name: e.Policy, Mode: string(e.Mode.OrDefault()), Title: p.Title, Params: e.Params})
	}
}

// hiddenInput lists the parts of the policy input that differ between calls of one operation by one caller.
func hiddenInput() []string {
	return []string{
		"/request/path", "/request/params", "/request/query", "/request/body",
		"/resource/current", "/resource/after", "/resource/template", "/cost", "/catalog", "/spend",
	}
}

// evaluateOperation evaluates the policies for an operation with all properties of the call unknown. A call that is denied with these
// inputs is denied in every case.
func evaluateOperation(
	ctx context.Context, engine *policies.Engine, op *schema.Operation, a *reference.Access, now time.Time,
) (reference.Operation, error) {
	out := reference.Operation{ID: op.ID}
	in := &policies.Input{
		Request:  policies.Request{Operation: op.ID, Method: op.Method, Body: map[string]any{"action": "start"}, Dialect: string(route.V2)},
		Caller:   policies.Caller{Org: a.Org, Team: a.Team, Key: a.Key, Roles: a.Roles},
		Resource: policies.Resource{After: map[string]any{}},
		Time:     now,
	}
	var err error
	out.Refused, out.ConditionalPolicies, err = evaluatePartial(ctx, engine, a.Org, &policyinput.Recorded{Input: in, Hidden: hiddenInput()})
	return out, err
}

// Refused returns the reasons why the policies refuse every call of an operation by a caller. It is empty if the policies may allow some
// calls.
func (g *Access) Refused(ctx context.Context, ex *filter.Exchange, op *schema.Operation) ([]string, error) {
	c := ex.Caller
	result, err := evaluateOperation(ctx, g.Engine.Load(), op,
		&reference.Access{Org: c.Org, Team: c.Team, Key: c.Key, Roles: c.RoleNames()}, g.Now())
	if err != nil {
		return nil, problem.PolicyUnavailable.New("policy evaluation failed").Because(err)
	}
	return result.Refused, nil
}

// evaluatePartial evaluates the policies for an input with unknown parts. refused lists the reasons for denials that do
// not depend on these parts; open lists the policies whose decision depends on them.
func evaluatePartial(
	ctx context.Context, engine *policies.Engine, org string, r *policyinput.Recorded,
) (refused, open []string, err error) {
	d, undecided, err := engine.DecideRecorded(ctx, org, r)
	if err != nil {
		return nil, nil, fmt.Errorf("evaluate policies for %s: %w", r.Input.Request.Operation, err)
	}
	for _, o := range undecided {
		open = append(open, o.Policy)
	}
	slices.Sort(open)
	open = slices.Compact(open)
	for _, v := range d.Deny {
		if !slices.Contains(open, v.Policy) {
			refused = append(refused, v.Policy+": "+v.Message)
		}
	}
	return refused, open, nil
}

// pricesFor lists the prices of GPUs, and why policies refuse a type.
func pricesFor(
	ctx context.Context, engine *policies.Engine, list *catalog.Snapshot, a *reference.Access, now time.Time,
) ([]reference.Price, error) {
	out := []reference.Price{}
	for _, g := range list.GPUs() {
		p := reference.Price{ID: g.ID, Name: g.Name}
		for _, c := range []struct {
			cloud   string
			offer   catalog.Offer
			price   *string
			refused *[]string
		}{{"SECURE", g.Secure, &p.Secure, &p.SecureRefused}, {"COMMUNITY", g.Community, &p.Community, &p.CommunityRefused}} {
			if !c.offer.Offered || !c.offer.Price.Known {
				continue
			}
			*c.price = c.offer.Price.PerHour.String()
			var err error
			if *c.refused, _, err = evaluatePartial(ctx, engine, a.Org, podWith(g.ID, c.cloud, list, a, now)); err != nil {
				return nil, err
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// podWith returns the policy input for a pod with one GPU in a cloud. Everything else is unknown, except that the pod
// costs at least the price of the GPU.
func podWith(gpu, cloud string, list *catalog.Snapshot, a *reference.Access, now time.Time) *policyinput.Recorded {
	const op = "createPod"
	pod := map[string]any{"gpu": map[string]any{"id": gpu, "count": json.Number("1")}, "cloud": cloud}
	hidden := []string{"/request/path", "/request/params", "/request/query", "/resource/current", "/resource/template", "/spend"}
	for name := range operation.BodyShape(op).Members {
		if _, given := pod[name]; !given && name != "cpu" { // a pod has either gpu or cpu
			hidden = append(hidden, "/request/body/"+name, "/resource/after/"+name)
		}
	}
	return &policyinput.Recorded{Hidden: hidden, Input: &policies.Input{
		Request:  policies.Request{Operation: op, Method: http.MethodPost, Body: pod, Dialect: string(route.V2)},
		Caller:   policies.Caller{Org: a.Org, Team: a.Team, Key: a.Key, Roles: a.Roles},
		Resource: policies.Resource{After: pod},
		Cost:     list.Price(op, operation.VerbCreate, pod), Catalog: list, Time: now,
	}}
}
