package legacy

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	shared "github.com/tollgate-dev/tollgate/translate/legacy"
	"github.com/tollgate-dev/tollgate/translate/usage"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// dialect is the common part of v1.API and graphqlDialect.
type dialect interface {
	// Refuse encodes a refusal of the gateway in the form of the dialect.
	Refuse(r *translate.Response) *translate.Outgoing
	// Brownout returns the refusal of the operation op during a brownout, with the given text.
	Brownout(op string, params map[string]string, text string) *translate.Outgoing
	// Serve responds to a request for the operation op by making v2 calls.
	Serve(ctx context.Context, op string, in *translate.Incoming, call translate.Caller) *translate.Outgoing
}

// graphqlDialect adapts graphql.API to dialect.
type graphqlDialect struct{ *graphql.API }

// Serve implements dialect.
func (d graphqlDialect) Serve(ctx context.Context, _ string, in *translate.Incoming, call translate.Caller) *translate.Outgoing {
	return d.API.Serve(ctx, in, call)
}

// translator implements filter.Translator. It is immutable.
type translator struct {
	dialect dialect
	// settings are the settings of the dialect, a v1.Config or a graphql.Config.
	settings any
	// dry returns the dialect for dry runs, which stores nothing and, if offline is true, reads nothing that is stored.
	dry func(offline bool) dialect
	// fields returns the operations of a request by its body. It is nil for a dialect whose routes identify the operation.
	fields func(in *translate.Incoming) []string
	// successors returns the v2 operations that replace an operation, most important first.
	successors func(name string) []string
	// api describes v2.
	api *schema.API
	// lists limits the memory of lists translated at the same time.
	lists *overload.Pool
	// usage counts the calls; nil counts nothing.
	usage *usage.Recorder
}

// Translators returns the translators for cfg by dialect. It reuses a translator of prev if the settings of the dialect have not changed.
// prev may be nil.
func (c *Calls) Translators(cfg *settings.Config, prev map[route.Dialect]filter.Translator) (map[route.Dialect]filter.Translator, error) {
	rest, gql := configs(cfg)
	first, _ := prev[route.V1].(*translator)
	if first == nil || first.settings != rest {
		api, err := v1.New(rest, c.translators)
		if err != nil {
			return nil, err
		}
		first = &translator{
			dialect: api, settings: rest, dry: func(offline bool) dialect { return api.WithDeps(c.dryDeps(offline)) },
			successors: c.replacements, api: c.api, lists: c.lists, usage: c.Recorder,
		}
	}
	second, _ := prev[route.GraphQL].(*translator)
	if second == nil || second.settings != gql {
		api, err := graphql.New(gql, c.translators)
		if err != nil {
			return nil, err
		}
		second = &translator{
			dialect: graphqlDialect{api}, settings: gql, dry: func(offline bool) dialect { return graphqlDialect{api.WithDeps(c.dryDeps(offline))} },
			fields: api.Fields, successors: graphql.Successors, api: c.api, lists: c.lists, usage: c.Recorder,
		}
	}
	return map[route.Dialect]filter.Translator{route.V1: first, route.GraphQL: second}, nil
}

// configs returns the settings of v1 and GraphQL.
func configs(cfg *settings.Config) (rest v1.Config, gql graphql.Config) {
	l := &cfg.Legacy
	both := shared.Config{
		Answers: shared.AnswerMode(l.Answers), Brand: l.Brand, Derived: l.DerivedName(),
		Deprecated: l.Deprecated, Sunset: l.Sunset,
	}
	rest, gql = v1.Config{Budget: cfg.V1.Budget, VolumeBudget: cfg.V1.VolumeBudget, Legacy: both}, graphql.DefaultConfig()
	gql.Introspection, gql.CreateTimeout, gql.Timeout, gql.Legacy = cfg.GraphQL.Introspection,
		cfg.GraphQL.CreateTimeout, cfg.GraphQL.Timeout, both
	return rest, gql
}

// dryDeps returns the dependencies of dialects for dry runs.
func (c *Calls) dryDeps(offline bool) translate.Deps {
	deps := translate.Deps{Now: c.Now, StoreIsReadOnly: true}
	if !offline {
		deps.Store = c.translators.Store
	}
	return deps
}

// translatorOf returns the translator for the dialect of an exchange, or nil if the dialect is not translated.
func translatorOf(ex *filter.Exchange) *translator {
	t, _ := ex.Ports.Translators[ex.Dialect].(*translator)
	return t
}

// ForDryRun implements filter.Translator.
func (t *translator) ForDryRun(offline bool) filter.Translator {
	dry := *t
	dry.dialect, dry.usage = t.dry(offline), nil
	return &dry
}

// Refuse implements filter.Translator.
func (t *translator) Refuse(p *problem.Problem) *filter.Response {
	body, err := strictjson.DecodeLenient(p.JSON())
	if err != nil { // cannot happen: the problem was just encoded
		panic(fmt.Sprintf("legacy: decode a problem: %v", err))
	}
	return responseOf(t.dialect.Refuse(&translate.Response{
		Status: p.Status, Header: p.Header, Body: body,
		Refused: true, Kind: string(p.Kind),
	}))
}

// Priority implements filter.Translator.
func (t *translator) Priority(ex *filter.Exchange) (p overload.Priority, known bool) {
	switch {
	case t.fields == nil:
		return t.priorityOf(ex.Route.ID), true
	case !ex.Body.HasDoc:
		return overload.Change, false
	}
	in := bodyOf(ex)
	for _, name := range t.fields(in) {
		p = max(p, t.priorityOf(name))
	}
	ex.Translation.Parsed = in.Parsed
	return p, true
}

// priorityOf returns the priority of an operation. It decides about operations that stop a pod by their name, because the priority of their
// v2 operation depends on the body.
func (t *translator) priorityOf(name string) overload.Priority {
	successors := t.successors(name)
	if len(successors) == 0 {
		return overload.Read // answered or refused without a v2 call
	}
	if name == "stopPod" || name == "podStop" {
		return overload.ReducesCost
	}
	row, _ := operation.Lookup(successors[0])
	return filter.PriorityOf(row.Verb)
}

// operations returns the operation names of a legacy call.
func (t *translator) operations(ex *filter.Exchange) []string {
	switch {
	case ex.Translation.Operations != nil:
		return ex.Translation.Operations
	case t.fields == nil || ex.Route == nil:
		return []string{ex.Event.Operation}
	case !ex.Body.HasDoc:
		return []string{unreadOperation}
	}
	return t.fields(bodyOf(ex))
}

// bodyOf returns the parts of a request that determine its operations.
func bodyOf(ex *filter.Exchange) *translate.Incoming {
	return &translate.Incoming{Header: http.Header{"Content-Type": ex.In.Header["Content-Type"]}, Body: ex.Body.Doc, HasBody: true}
}

// replacements returns the v2 operations that replace a v1 operation.
func (c *Calls) replacements(id string) []string { return c.moves[id] }

// Routes lists the routes of the legacy dialects.
func Routes() []filter.Served {
	graphQL := route.Route{ID: "graphql", Dialect: route.GraphQL, Method: http.MethodPost, Pattern: "/graphql", Public: true}
	routes := []filter.Served{{Route: graphQL}}
	for _, op := range v1.Operations() {
		routes = append(routes, filter.Served{Route: route.Route{
			ID: op.ID, Dialect: route.V1, Method: op.Method, Pattern: op.Path,
			Public: op.Public, IgnoresBody: op.IgnoresBody,
		}})
	}
	return routes
}
