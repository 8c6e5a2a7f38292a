package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/load"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/brownout"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// agent is how the gateway names itself to the platform.
func agent(version string) string { return "tollgate/" + version }

// compile turns a configuration into what the doors use.
func (g *Gateway) compile(cfg *Config) (*state, error) {
	if err := errors.Join(cfg.Validate(), covered(g.api.Operations(), operation.All())); err != nil {
		return nil, err
	}
	directory, err := cfg.directory()
	if err != nil {
		return nil, err
	}
	client, err := upstream.New(cfg.upstream(), cfg.credentials())
	if err != nil {
		return nil, err
	}
	engine, err := g.newEngine(cfg)
	if err != nil {
		return nil, err
	}
	library, err := load.Library()
	if err != nil {
		return nil, err
	}
	first, gql, err := newTranslators(cfg, g.dialects)
	if err != nil {
		return nil, err
	}
	dialects := map[route.Dialect]dialect{route.V1: first, route.GraphQL: gql}
	pages, err := reference.Files()
	if err != nil {
		return nil, err
	}
	table, err := newTable(g.api, append(localRoutes(pages), legacyRoutes(cfg, first)...))
	if err != nil {
		return nil, err
	}
	classes, err := classes(cfg, g.api)
	if err != nil {
		return nil, err
	}
	recent, err := filter.NewRecent(g.deps.Now)
	if err != nil {
		return nil, err
	}
	reader := &filter.Reader{Upstream: client, Recorder: g.recorder, Agent: agent(g.deps.Version)}
	resolve := &filter.Resolve{
		Reads: filter.ReadsOf(g.api), Template: g.api.Operation("getTemplate"), Templates: g.api.Operation("listTemplates"),
		Looks: engine.Reads, Reader: reader, Recorder: g.recorder,
	}
	chain := &filter.Chain{Dialects: make(map[route.Dialect]filter.Dialect)}
	translators, dimmers := make(map[route.Dialect]filter.Translator), make(map[route.Dialect]filter.Dimmer)
	for name, d := range dialects {
		chain.Dialects[name], translators[name], dimmers[name] = d, d, d
	}
	dark := brownouts(cfg)
	count := &filter.Count{Quotas: quotas(cfg), Recorder: g.recorder}

	// The order of the pipeline. Cheap before dear, identity before quota,
	// quota before bodies; size before everything.
	chain.Head = []filter.Filter{
		filter.Stamp{},
		filter.Size{},
		filter.Wire{},
		filter.Match{Table: table, API: g.api},
		filter.Identify{Directory: directory, Guard: g.guard},
		&filter.Legacy{
			Names: map[route.Dialect]filter.Namer{route.GraphQL: gql}, Brownouts: dark,
			Anonymous: cfg.AnonymousCatalog, Now: g.deps.Now,
		},
		count,
		filter.Routed{},
	}
	chain.Content = []filter.Filter{
		filter.Size{},
		filter.Local{Answers: g.localAnswers(pages)},
		filter.Decode{Limits: strictjson.DefaultLimits()},
		&filter.Brownout{Brownouts: dark, Dialects: dimmers, Anonymous: cfg.AnonymousCatalog, Now: g.deps.Now},
		&filter.Translate{API: g.api, Chain: chain, Count: count, Anonymous: cfg.AnonymousCatalog},
	}
	chain.Call = []filter.Filter{
		&filter.Classes{Of: classes, Recorder: g.recorder},
		filter.Validate{},
		resolve,
		&filter.Authorize{Engine: engine, Resolve: resolve, Changes: changers(cfg, library)},
		filter.Rebuild{Agent: agent(g.deps.Version)},
		filter.Relay{Upstream: client},
		&filter.Share{Weights: weights(cfg)},
	}
	ports := filter.Ports{
		Counter: g.limiter, Shares: g.shares, Recent: recent, Prices: g.catalog, Translators: translators, Usage: g.usage, Observer: g.history,
		Sender: &filter.Dispatcher{Upstream: client, Recorder: g.recorder, Deadline: cfg.Timeouts.Call, Streams: g.streams},
	}
	if g.decisions != nil {
		ports.Decisions = g.decisions
	}
	return &state{
		config:   cfg,
		pipeline: &filter.Pipeline{Chain: chain, Ports: ports, Authorization: client.Authorization, Revision: cfg.Revision},
		callers:  directory,
		reader:   reader,
		client:   client,
		engine:   engine,
		moves:    moves(first),
		loaded:   g.deps.Now(),
	}, nil
}

func (g *Gateway) newEngine(cfg *Config) (*policies.Engine, error) {
	orgs := make(map[string]policies.Config, len(cfg.Orgs))
	for _, o := range cfg.Orgs {
		section := o.Policies
		var err error
		if section.Bundle, err = g.keepBundle(o.ID, section.Bundle); err != nil {
			return nil, err
		}
		orgs[o.ID] = section
	}
	return policies.NewEngine(cfg.Policies, orgs, policies.Deps{Logger: g.deps.Logger, Changed: g.streams.Recheck})
}

// changers lists the organisations whose policies may change bodies: those of
// the library that do, and any of an organisation's own.
func changers(cfg *Config, library []load.Policy) map[string]bool {
	may := make(map[string]bool)
	for _, p := range library {
		may[p.Name] = p.Mutates
	}
	out := make(map[string]bool)
	for _, o := range cfg.Orgs {
		own := o.Policies.Directory != "" || o.Policies.Bundle != nil
		out[o.ID] = own || slices.ContainsFunc(o.Policies.Policies, func(e policies.Entry) bool { return may[e.Policy] })
	}
	return out
}

// quotas lists what every caller is counted in.
func quotas(cfg *Config) map[filter.QuotaKey]filter.Quota {
	m := make(map[filter.QuotaKey]filter.Quota)
	for _, o := range cfg.Orgs {
		teams := make(map[string]ratelimit.Limit, len(o.Teams))
		for _, t := range o.Teams {
			teams[t.ID] = t.Limit
		}
		for _, k := range o.Keys {
			q := filter.Quota{Failure: o.Failure.byClass()}
			add := func(kind ratelimit.ScopeKind, id string, limit ratelimit.Limit) {
				if !limit.Unlimited() {
					q.Scopes = append(q.Scopes, ratelimit.Scope{Kind: kind, ID: id, Limit: limit})
				}
			}
			add(ratelimit.KindKey, k.ID, k.Limit)
			if k.Team != "" {
				add(ratelimit.KindTeam, k.Team, teams[k.Team])
			}
			add(ratelimit.KindOrg, o.ID, o.Limit)
			m[filter.QuotaKey{Org: o.ID, Key: k.ID}] = q
		}
	}
	return m
}

// classes lists the classes of every operation.
func classes(cfg *Config, api *schema.API) (map[filter.ClassKey][]filter.Class, error) {
	m := make(map[filter.ClassKey][]filter.Class)
	var errs []error
	for i, o := range cfg.Orgs {
		for j, c := range o.Classes {
			for k, op := range c.Operations {
				if api.Operation(op) == nil {
					errs = append(errs, fault.Errorf(fmt.Sprintf("orgs[%d].classes[%d].operations[%d]", i, j, k), "the v2 API has no operation %q", op))
					continue
				}
				key := filter.ClassKey{Org: o.ID, Operation: op}
				m[key] = append(m[key], c.class())
			}
		}
	}
	return m, errors.Join(errs...)
}

// weights lists the teams that do not weigh one.
func weights(cfg *Config) map[filter.TeamKey]int64 {
	m := make(map[filter.TeamKey]int64)
	for _, o := range cfg.Orgs {
		for _, t := range o.Teams {
			if t.Weight > 0 {
				m[filter.TeamKey{Org: o.ID, Team: t.ID}] = t.Weight
			}
		}
	}
	return m
}

// brownouts lists the schedules there are.
func brownouts(cfg *Config) filter.Brownouts {
	m := make(filter.Brownouts)
	for _, o := range cfg.Orgs {
		for _, dialect := range []route.Dialect{route.V1, route.GraphQL} {
			if s := brownout.New(o.Brownouts, brownout.Dialect(dialect)); s != nil {
				m[filter.BrownoutKey{Org: o.ID, Dialect: dialect}] = s
			}
		}
	}
	return m
}

// graphqlDoor gives the one GraphQL route the shape of a translator.
type graphqlDoor struct{ *graphql.API }

// Serve implements filter.Translator.
func (d graphqlDoor) Serve(ctx context.Context, _ string, in *translate.Incoming, call translate.Caller) *translate.Outgoing {
	return d.API.Serve(ctx, in, call)
}

// dialect is all that the chain asks of a legacy dialect.
type dialect interface {
	filter.Translator
	filter.Dimmer
}

// newTranslators builds the legacy dialects.
func newTranslators(cfg *Config, deps translate.Deps) (*v1.API, graphqlDoor, error) {
	first, err := v1.New(cfg.V1, deps)
	if err != nil {
		return nil, graphqlDoor{}, err
	}
	gql, err := graphql.New(cfg.GraphQL, deps)
	return first, graphqlDoor{gql}, err
}

// legacyRoutes lists the routes of the legacy dialects.
func legacyRoutes(cfg *Config, first *v1.API) []route.Route {
	routes := []route.Route{{ID: "graphql", Dialect: route.GraphQL, Method: http.MethodPost, Pattern: "/graphql", Public: cfg.AnonymousCatalog != ""}}
	for _, op := range first.Operations() {
		routes = append(routes, route.Route{ID: op.ID, Dialect: route.V1, Method: op.Method, Pattern: op.Path, Public: op.Public})
	}
	return routes
}

// moves maps the operations of v1 to those of v2 that take their place.
func moves(first *v1.API) map[string][]string {
	m := make(map[string][]string)
	for _, op := range first.Operations() {
		if op.V2 != "" {
			m[op.ID] = []string{op.V2}
		}
	}
	return m
}

// newTable builds the one table of all dialects' routes: those of the API's
// description, and others.
func newTable(api *schema.API, others []route.Route) (*route.Table, error) {
	routes := make([]route.Route, 0, len(others)+64)
	for _, op := range api.Operations() {
		row, _ := operation.Of(op.ID)
		routes = append(routes, route.Route{
			ID: op.ID, Dialect: route.V2, Method: op.Method, Pattern: op.Path, Public: row.Kind == operation.KindGateway,
		})
	}
	t, err := route.NewTable(append(routes, others...))
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	return t, nil
}
