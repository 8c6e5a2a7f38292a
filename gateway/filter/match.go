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

// MatchRoute finds the operation of a request. A request that matches nothing is
// noted here and refused by Routed, after its caller was identified and
// counted: strangers learn nothing about routes, and probing is not free.
type MatchRoute struct {
	Table *route.Table
	// API describes v2, Run the run interface; nil when it is not served.
	API, Run *schema.API
}

// textNoPath is the detail of a 404 for a path without an operation.
const textNoPath = "no operation has this path"

// unmatched stands for the operation of a request that matched nothing.
const unmatched = "unmatched"

// Name implements Filter.
func (MatchRoute) Name() string { return "match" }

// Request fills in Route, Params, Query and, unless it is legacy, Operation.
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
		return problem.Misdirected.New("the run interface is not served through this proxy")
	case d.IsRun():
		ex.Operation = m.Run.Operation(found.Route.ID)
	}
	return nil
}

// head finds the read that a HEAD is about, which is asked in its place: its answer is
// sent without the body (RFC 9110, section 9.3.2). Logs and streams have no head of their
// own, and Envoy sends the method on that it got.
func (m MatchRoute) head(ex *Exchange, refusal error) (route.Match, error) {
	found, err := m.Table.Match(http.MethodGet, ex.In.Path)
	if err != nil || ex.In.Door != DoorHTTP {
		return found, refusal
	}
	if row, _ := operation.Of(found.Route.ID); found.Route.Dialect != route.V1 && (row.Verb == operation.VerbLogs || row.ID == streamed) {
		return found, refusal
	}
	return found, nil
}

// streamed is the operation whose answer is a stream of a job's output.
const streamed = "streamJob"

// Notes implements Noter.
func (MatchRoute) Notes(ex *Exchange, _ string) []string {
	if ex.Event.Operation == unmatched {
		return []string{"no operation; refused once the caller is known and counted"}
	}
	return []string{string(ex.Dialect) + " operation " + ex.Event.Operation}
}

// RequireRoute refuses requests with a fault noted by Match, but for reads that are to be forwarded.
type RequireRoute struct {
	// API describes v2, Run the run interface, whether that is served or not.
	API, Run *schema.API
}

// Name implements Filter.
func (RequireRoute) Name() string { return "routed" }

// Request refuses with 404, 405 or 400.
func (r RequireRoute) Request(_ context.Context, ex *Exchange) error {
	switch {
	case ex.Progress.routeErr != nil:
		return r.forwardUnknownRead(ex)
	case ex.Operation != nil && ex.Operation.ID == ModelCall && (catalog.Public(ex.Params["id"]) || !slices.Contains(ex.Tenant.ModelPaths, ex.Params["path"])):
		return route.ErrNotFound
	}
	return nil
}

// ModelCall is the operation of paths that an organisation has named for its endpoints'
// model servers: nothing is known of their bodies but their counts of tokens.
const ModelCall = "modelCall"
