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

// graphqlTranslator gives the one GraphQL route the shape of a translator.
type graphqlTranslator struct{ *graphql.API }

// Serve implements filter.Translator.
func (d graphqlTranslator) Serve(ctx context.Context, _ string, in *translate.Incoming, call translate.Caller) *translate.Outgoing {
	return d.API.Serve(ctx, in, call)
}

// Dialects are the legacy dialects of a configuration.
type Dialects struct {
	first *v1.API
	gql   graphqlTranslator
	// rest and graphql are their settings.
	rest    v1.Config
	graphql graphql.Config
}

// Dialects builds the dialects of a configuration. It returns the dialects before, nil for none, if their settings are the same.
func (c *Calls) Dialects(cfg *settings.Config, before *Dialects) (*Dialects, error) {
	return compile(cfg, c.translators, before)
}

// ForDryRun builds dialects for a dry run, which remember nothing.
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

// Translators serve them.
func (d *Dialects) Translators() map[route.Dialect]filter.Translator {
	return map[route.Dialect]filter.Translator{route.V1: d.first, route.GraphQL: d.gql}
}

// Namers find the name of an operation, where the path does not say it.
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

// Successors maps the operations of v1 to those of v2 that take their place.
func (d *Dialects) Successors() map[string][]string {
	m := make(map[string][]string)
	for _, op := range d.first.Operations() {
		if op.V2 != "" {
			m[op.ID] = []string{op.V2}
		}
	}
	return m
}

// Urgency says how urgent the operations of legacy dialects are. That of a stop has a body which says so.
func (d *Dialects) Urgency() func(route.Dialect, string) overload.Priority {
	v1 := d.Successors()
	return func(d route.Dialect, name string) overload.Priority {
		successors := graphql.Successors(name)
		if d == route.V1 {
			successors = v1[name]
		}
		if len(successors) == 0 {
			return overload.Read // it is answered here, or refused
		}
		if name == "stopPod" || name == "podStop" {
			return overload.ReducesCost
		}
		row, _ := operation.Of(successors[0])
		return filter.PriorityOf(row.Verb)
	}
}

// RouteTable builds the one table of all dialects' routes: those of the API's
// description, and others.
func RouteTable(api *schema.API, others []route.Route) (*route.Table, error) {
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
