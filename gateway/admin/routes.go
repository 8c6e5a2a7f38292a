package admin

import (
	"context"
	"net/http"
	"net/http/pprof"
	"reflect"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Rows returns the listener's own rows and the rows of all features.
func (d Deps) Rows() (all []row.Row) {
	description := row.Row{
		Pattern: "GET /admin/openapi.json", Summary: "This document", Role: row.Viewer, About: row.OfAsker,
		Ask: row.Do(func(context.Context, row.Scope, row.None) (object, error) { return document(all), nil }),
	}
	all = slices.Concat(
		d.gatewayRows(), []row.Row{description}, d.Features,
		d.processRows(),
	)
	return all
}

// processRows are about the process, for those who look into it.
func (d Deps) processRows() []row.Row {
	seconds := []row.Param{{Name: "seconds", Doc: "how long", Type: reflect.TypeFor[int]()}}
	const profile = "application/octet-stream"
	return []row.Row{
		{Pattern: "GET /metrics", Summary: "Metrics for Prometheus", Handle: d.metrics, Media: "text/plain"},
		{Pattern: "GET /debug/pprof/", Summary: "Profiles of the process", Role: row.Operator, Handle: pprof.Index, Media: "text/html"},
		{Pattern: "GET /debug/pprof/profile", Summary: "A profile of the processors", Role: row.Operator, Handle: pprof.Profile, Params: seconds, Media: profile},
		{Pattern: "GET /debug/pprof/symbol", Summary: "Names of program counters", Role: row.Operator, Handle: pprof.Symbol, Media: "text/plain"},
		{Pattern: "GET /debug/pprof/trace", Summary: "A trace of the execution", Role: row.Operator, Handle: pprof.Trace, Params: seconds, Media: profile},
	}
}

func (d Deps) metrics(w http.ResponseWriter, r *http.Request) { d.Metrics.ServeHTTP(w, r) }
