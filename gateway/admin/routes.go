package admin

import (
	"net/http"
	"net/http/pprof"
	"reflect"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Shapes are zero values of the results of Decisions, Drafts, Approvals and Keys, for the description of the API.
type Shapes struct{ Report, Summary, Audit, Replayed, Approval, Made any }

// Rows returns the whole of the operators' listener. Each file has its rows beside the functions that they ask. Those of the zero Deps can be
// read, and not be asked.
func (d Deps) Rows() []row.Row {
	d.streams = semaphore.NewWeighted(maxStreams)
	return slices.Concat(
		d.gatewayRows(), d.descriptionRows(), d.overviewRows(), d.Features, d.spendRows(), d.costRows(), d.idleRows(), d.alertRows(), d.reportRows(),
		d.approvalRows(), d.keyRows(), d.tokenRows(), d.legacyRows(), d.envoyRows(), d.decisionRows(), d.streamRows(), d.policyRows(), d.draftRows(),
		d.auditLogRows(), d.configRows(), d.revisionRows(), d.processRows(),
	)
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
