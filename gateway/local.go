package gateway

import (
	"maps"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/keep"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

// accessRoute is the id of the route that lists a caller's permissions. It needs a
// key; the rest of the reference does not.
const accessRoute = "docs.access"

// localRoutes lists the routes of v2 that the gateway answers itself, beside those
// the API's description has.
func localRoutes(files []reference.File) []route.Route {
	routes := append(slices.Concat(keep.Routes(), callers.Routes(), selfservice.Routes()), route.Route{ID: accessRoute, Dialect: route.V2, Method: http.MethodGet, Pattern: reference.AccessPath})
	for _, f := range files {
		routes = append(routes, route.Route{ID: "docs:" + f.Path, Dialect: route.V2, Method: http.MethodGet, Pattern: f.Path, Public: true})
	}
	return routes
}

// localAnswers maps the routes that the gateway answers itself to their answers.
func (g *Gateway) localAnswers(files []reference.File) map[string]filter.Responder {
	answers := map[string]filter.Responder{
		"getOpenAPI": filter.Document(http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"max-age=300"}}, g.api.Document),
		accessRoute:  g.access.Answer,
	}
	maps.Copy(answers, g.keep.Answers())
	for _, r := range callers.Routes() {
		answers[r.ID] = g.keys.Answer
	}
	maps.Copy(answers, g.selfService.Answers())
	for _, f := range files {
		answers["docs:"+f.Path] = filter.Document(f.Header, f.Body)
	}
	return answers
}
