package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/load"
	"github.com/tollgate-dev/tollgate/policies/record"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// accessRoute is the id of the route that says what a caller may do. It needs a
// key; the rest of the reference does not.
const accessRoute = "docs.access"

// localRoutes lists the routes of v2 that the gateway answers itself, beside those
// the API's description has.
func localRoutes(files []reference.File) []route.Route {
	routes := append(slices.Concat(keepRoutes(), keyRoutes()), billTypesRoute(), route.Route{ID: accessRoute, Dialect: route.V2, Method: http.MethodGet, Pattern: reference.AccessPath})
	for _, f := range files {
		routes = append(routes, route.Route{ID: "docs:" + f.Path, Dialect: route.V2, Method: http.MethodGet, Pattern: f.Path, Public: true})
	}
	return routes
}

// localAnswers maps the routes that the gateway answers itself to their answers.
func (g *Gateway) localAnswers(files []reference.File) map[string]filter.Responder {
	answers := map[string]filter.Responder{
		"getOpenAPI": filter.Document(http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"max-age=300"}}, g.api.Document),
		accessRoute:  g.answerAccess,
		keepRoute:    g.answerKeep,
		keepPageID:   g.answerKeepPage,
		keepLinkID:   g.answerKeepLink,
		billTypesID:  g.answerBillTypes,
	}
	for _, r := range keyRoutes() {
		answers[r.ID] = g.answerKeys
	}
	for _, f := range files {
		answers["docs:"+f.Path] = filter.Document(f.Header, f.Body)
	}
	return answers
}

// answerAccess answers what the caller may do.
func (g *Gateway) answerAccess(ctx context.Context, ex *filter.Exchange) (*filter.Answer, error) {
	access, err := g.access(ctx, ex.Caller, ex.Tenant)
	if err != nil {
		return nil, err
	}
	return answerJSON(access)
}

// answerJSON is an answer to one caller, which is not to be kept.
func answerJSON(v any) (*filter.Answer, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return &filter.Answer{
		Status: http.StatusOK, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}},
	}, nil
}

// access collects limits, policies and prices for a caller.
func (g *Gateway) access(ctx context.Context, caller *identity.Caller, tenant *filter.Tenant) (*reference.Access, error) {
	now := g.current.Load()
	a := &reference.Access{
		Org: caller.Org, Team: caller.Team, Key: caller.Key, Roles: caller.RoleNames(),
		Limits: []reference.Limit{}, Policies: []reference.Policy{}, Prices: []reference.Price{},
	}
	counted, err := g.limiter.Show(ctx, caller.Org)
	known := err == nil // without the store only the quotas are
	for _, s := range tenant.Scopes(caller) {
		for w := range ratelimit.Windows {
			if limit := s.Limit.Quota(w); limit > 0 {
				a.Limits = append(a.Limits, limitOf(s.Ref(), ratelimit.WindowName(w), limit, counted, known))
			}
		}
	}
	addPolicies(a, now.config.entries(caller.Org))
	for _, op := range g.api.Operations() {
		judged, err := judgedWhatever(ctx, now.engine, op, a, g.deps.Now())
		if err != nil {
			return nil, err
		}
		a.Operations = append(a.Operations, judged)
	}
	if prices, err := g.catalog.Snapshot(ctx, caller.Org); err == nil {
		a.Prices = pricesOf(prices)
	}
	return a, nil
}

// limitOf is one window as it was counted; Remaining is nil when that is not known.
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

// addPolicies lists the entries that are for a caller.
func addPolicies(a *reference.Access, entries []policies.Entry) {
	for _, e := range entries {
		if !e.Concerns(a.Team, a.Roles) {
			continue
		}
		p, _ := load.Lookup(e.Policy) // an own policy has no title
		a.Policies = append(a.Policies, reference.Policy{Name: e.Policy, Mode: string(e.Mode.OrDefault()), Title: p.Title, Params: e.Params})
	}
}

// contents are the places of an input that differ from call to call of one
// operation by one caller.
func contents() []string {
	return []string{
		"/request/path", "/request/params", "/request/query", "/request/body",
		"/resource/current", "/resource/after", "/resource/template", "/cost", "/catalog", "/spend",
	}
}

// judgedWhatever asks the policies about an operation, with all that a call says
// unknown: what they deny all the same they deny to every call.
func judgedWhatever(ctx context.Context, engine *policies.Engine, op *schema.Operation, a *reference.Access, now time.Time) (reference.Operation, error) {
	out := reference.Operation{ID: op.ID}
	in := &policies.Input{
		Request:  policies.Request{Operation: op.ID, Method: op.Method, Body: map[string]any{"action": "start"}, Dialect: string(route.V2)},
		Caller:   policies.Caller{Org: a.Org, Team: a.Team, Key: a.Key, Roles: a.Roles},
		Resource: policies.Resource{After: map[string]any{}},
		Time:     now,
	}
	d, open, err := engine.DecideRecorded(ctx, a.Org, &record.Recorded{Input: in, Hidden: contents()})
	if err != nil {
		return out, fmt.Errorf("judge %s: %w", op.ID, err)
	}
	for _, o := range open {
		out.JudgedBy = append(out.JudgedBy, o.Policy)
	}
	slices.Sort(out.JudgedBy)
	out.JudgedBy = slices.Compact(out.JudgedBy)
	for _, v := range d.Deny {
		if !slices.Contains(out.JudgedBy, v.Policy) {
			out.Refused = append(out.Refused, v.Policy+": "+v.Message)
		}
	}
	return out, nil
}

func pricesOf(list *catalog.Snapshot) []reference.Price {
	out := []reference.Price{}
	amount := func(o catalog.Offer) string {
		if !o.Offered || !o.Price.Known {
			return ""
		}
		return o.Price.PerHour.String()
	}
	for _, g := range list.GPUs() {
		out = append(out, reference.Price{ID: g.ID, Name: g.Name, Secure: amount(g.Secure), Community: amount(g.Community)})
	}
	return out
}
