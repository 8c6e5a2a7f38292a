package admin

import (
	"context"
	"net/http"
	"net/http/pprof"
	"reflect"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Endpoints returns the endpoints of the admin listener and of all features.
func (d Deps) Endpoints() (all []adminapi.Endpoint) {
	description := adminapi.Endpoint{
		Pattern: "GET /admin/openapi.json", Summary: "This document", Role: adminapi.Viewer, Subject: adminapi.SubjectCaller,
		Handler: adminapi.HandlerFor(func(context.Context, adminapi.Principal, adminapi.NoParams) (object, error) {
			return document(all), nil
		}),
	}
	all = slices.Concat(
		d.gatewayRows(), []adminapi.Endpoint{description}, d.Features,
		d.processRows(),
	)
	return all
}

// processRows returns the endpoints for debugging the process.
func (d Deps) processRows() []adminapi.Endpoint {
	seconds := []adminapi.Param{{Name: "seconds", Doc: "duration", Type: reflect.TypeFor[int]()}}
	const profile = "application/octet-stream"
	return []adminapi.Endpoint{
		{Pattern: "GET /metrics", Summary: "Metrics in the Prometheus format", HTTPHandler: d.metrics, ContentType: "text/plain"},
		{
			Pattern: "GET /debug/pprof/", Summary: "Profiles of the process", Role: adminapi.Operator,
			HTTPHandler: pprof.Index, ContentType: "text/html",
		},
		{
			Pattern: "GET /debug/pprof/profile", Summary: "CPU profile", Role: adminapi.Operator, HTTPHandler: pprof.Profile,
			Params: seconds, ContentType: profile,
		},
		{
			Pattern: "GET /debug/pprof/symbol", Summary: "Names of program counters", Role: adminapi.Operator,
			HTTPHandler: pprof.Symbol, ContentType: "text/plain",
		},
		{
			Pattern: "GET /debug/pprof/trace", Summary: "Execution trace", Role: adminapi.Operator, HTTPHandler: pprof.Trace,
			Params: seconds, ContentType: profile,
		},
	}
}

func (d Deps) metrics(w http.ResponseWriter, r *http.Request) { d.Metrics.ServeHTTP(w, r) }
