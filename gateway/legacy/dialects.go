package legacy

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// graphqlTranslator adapts graphql.API to filter.Translator.
type graphqlTranslator struct{ *graphql.API }

// Serve implements filter.Translator.
func (d graphqlTranslator) Serve(ctx context.Context, _ string, in *translate.Incoming, call translate.Caller) *translate.Outgoing {
	return d.API.Serve(ctx, in, call)
}

// Dialects holds the translators of a configuration.
type Dialects struct {
	first *v1.API
	gql   graphqlTranslator
	// rest and graphql are the settings of the translators.
	rest    v1.Config
	graphql graphql.Config
}

// Dialects returns the translators of a configuration. It returns before, which may be nil, if their settings are
// unchanged.
func (c *Calls) Dialects(cfg *settings.Config, before *Dialects) (*Dialects, error) {
	return compile(cfg, c.translators, before)
}

// ForDryRun returns translators for a dry run, which store nothing.
func ForDryRun(cfg *settings.Config, now func() time.Time) (*Dialects, error) {
	return compile(cfg, translate.Deps{Now: now}.WithDefaults(), nil)
}

func compile(cfg *settings.Config, deps translate.Deps, before *Dialects) (*Dialects, error) {
	rest, gql := cfg.V1, cfg.GraphQL
	rest.Legacy, gql.Legacy = cfg.Legacy.Config, cfg.Legacy.Config
	if before != nil && before.rest == rest && before.graphql == gql {
		return before, nil
	}
	first, err := v1.New(rest, deps)
	if err != nil {
		return nil, err
	}
	second, err := graphql.New(gql, deps)
	return &Dialects{first, graphqlTranslator{second}, rest, gql}, err
}

// Translators returns the translators by dialect.
func (d *Dialects) Translators() map[route.Dialect]filter.Translator {
	return map[route.Dialect]filter.Translator{route.V1: d.first, route.GraphQL: d.gql}
}

// Namers returns, by dialect, the function that finds the operation of a request whose path does not identify it, such as a GraphQL query.
func (d *Dialects) Namers() map[route.Dialect]filter.OperationNamer {
	return map[route.Dialect]filter.OperationNamer{route.GraphQL: d.gql}
}

// Routes lists the routes of the legacy dialects.
func (d *Dialects) Routes() []route.Route {
	routes := []route.Route{{ID: "graphql", Dialect: route.GraphQL, Method: http.MethodPost, Pattern: "/graphql", Public: true}}
	for _, op := range d.first.Operations() {
		routes = append(routes, route.Route{ID: op.ID, Dialect: route.V1, Method: op.Method, Pattern: op.Path, Public: op.Public, IgnoresBody: op.IgnoresBody})
	}
	return routes
}

// Successors maps v1 operations to the v2 operations that replace them.
func (d *Dialects) Successors() map[string][]string {
	m := make(map[string][]string)
	for _, op := range d.first.Operations() {
		if op.V2 != "" {
			m[op.ID] = []string{op.V2}
		}
	}
	return m
}

// Urgency returns a function that maps legacy operations to priorities. Operations that stop a pod are a special case,
// because the priority of their v2 operation depends on the body.
func (d *Dialects) Urgency() func(route.Dialect, string) overload.Priority {
	v1 := d.Successors()
	return func(d route.Dialect, name string) overload.Priority {
		successors := graphql.Successors(name)
		if d == route.V1 {
			successors = v1[name]
		}
		if len(successors) == 0 {
			return overload.Read // answered or refused without a v2 call
		}
		if name == "stopPod" || name == "podStop" {
			return overload.ReducesCost
		}
		row, _ := operation.Lookup(successors[0])
		return filter.PriorityOf(row.Verb)
	}
}

// RouteTable returns the table of all routes: the v2 routes of the API description, and the given others.
func RouteTable(api *schema.API, others []route.Route) (*route.Table, error) {
	routes := make([]route.Route, 0, len(others)+64)
	for _, op := range api.Operations() {
		row, _ := operation.Lookup(op.ID)
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
