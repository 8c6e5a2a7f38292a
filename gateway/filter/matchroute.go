package filter

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// MatchRoute finds the route and the operation of a request. If no route matches, MatchRoute only records the error, and RequireRoute
// refuses the request after authentication and rate limiting. Clients without a key therefore cannot discover routes, and probing uses up
// quota.
type MatchRoute struct {
	Table *route.Table
	// API describes v2. Run describes the run interface, nil if it is not served.
	API, Run *schema.API
}

// textNoPath is the detail of the 404 for an unknown path.
const textNoPath = "no operation has this path"

// unmatched is the operation recorded for requests without a route.
const unmatched = "unmatched"

// Name implements Filter.
func (MatchRoute) Name() string { return "match route" }

// Request sets ex.Route, ex.Params and ex.Query. If the request is not in a legacy dialect, it also sets ex.Operation.
func (m MatchRoute) Request(_ context.Context, ex *Exchange) error {
	ex.Progress.routeErr = m.find(ex)
	if errors.Is(ex.Progress.routeErr, route.ErrNotFound) {
		if near := m.Table.Suggest(ex.In.Method, ex.In.Path); near != "" {
			ex.Progress.routeErr = problem.NotFound.New(textNoPath + ", did you mean " + near + "?").Because(ex.Progress.routeErr)
		}
	}
	return nil
}

func (m MatchRoute) find(ex *Exchange) error {
	found, err := m.Table.Match(ex.In.Method, ex.In.Path)
	if err != nil && ex.In.Method == http.MethodHead {
		found, err = m.head(ex, err)
	}
	if err != nil {
		return err
	}
	query, err := route.ParseQuery(ex.In.Query)
	if err != nil {
		return err
	}
	ex.Route, ex.Params, ex.Query = found.Route, found.Params, query
	ex.Event.Operation = found.Route.ID
	switch d := found.Route.Dialect; {
	case d == route.V2:
		ex.Operation = m.API.Operation(found.Route.ID)
	case d.IsRun() && ex.In.Door == DoorExtProc:
		return problem.Misdirected.New("the API for runs and jobs is not served through this proxy")
	case d.IsRun():
		ex.Operation = m.Run.Operation(found.Route.ID)
	}
	return nil
}

// head returns the GET route for a HEAD request. The gateway sends the call as GET and omits the body from the response (RFC 9110, section
// 9.3.2). Logs and streams do not support HEAD. Requests through Envoy do not support it either, because Envoy sends the original method.
func (m MatchRoute) head(ex *Exchange, refusal error) (route.Match, error) {
	found, err := m.Table.Match(http.MethodGet, ex.In.Path)
	if err != nil || ex.In.Door != DoorHTTP {
		return found, refusal
	}
	if row, _ := operation.Lookup(found.Route.ID); found.Route.Dialect != route.V1 && (row.Verb == operation.VerbLogs || row.ID == streamed) {
		return found, refusal
	}
	return found, nil
}

// streamed is the operation that streams the output of a job.
const streamed = "streamJob"

// Notes implements Explainer.
func (MatchRoute) Notes(ex *Exchange, _ string) []string {
	if ex.Event.Operation == unmatched {
		return []string{"no matching operation; refused after authentication and rate limiting"}
	}
	return []string{string(ex.Dialect) + " operation " + ex.Event.Operation}
}

// RequireRoute refuses requests without a route. Reads of unknown paths pass if the organisation forwards them; see [Unknown].
type RequireRoute struct {
	// API describes v2. Run describes the run interface and is set even if it is not served.
	API, Run *schema.API
}

// Name implements Filter.
func (RequireRoute) Name() string { return "require route" }

// Request returns 404 for an unknown path, 405 for a method that the path does not support, 400 for a malformed path or query, and 421 for
// a call of the run interface through Envoy.
func (r RequireRoute) Request(_ context.Context, ex *Exchange) error {
	switch {
	case ex.Progress.routeErr != nil:
		return r.forwardUnknownRead(ex)
	case ex.Operation != nil && ex.Operation.ID == ModelCall &&
		(catalog.IsPublicModel(ex.Params["id"]) || !slices.Contains(ex.Tenant.ModelPaths, ex.Params["path"])):
		return route.ErrNotFound
	}
	return nil
}

// ModelCall is the ID of the operation that covers all paths of model servers configured by an organisation; see [Tenant.ModelPaths]. The
// gateway reads only the token counts in the bodies of these calls.
const ModelCall = "modelCall"
