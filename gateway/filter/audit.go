package filter

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Audit records calls that change something, before they are sent and when their
// end is known. A call that cannot be recorded is not sent: 503. Calls of the run interface
// change nothing that lasts and are not recorded.
type Audit struct{}

// Name implements Filter.
func (Audit) Name() string { return "audit" }

// Request writes the intent.
func (Audit) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Of(ex.Operation.ID)
	if ex.Ports.Audit == nil || row.Kind == operation.KindJob {
		return nil
	}
	verb := row.Does(ex.Evaluation.Input.Request.Body)
	if !verb.Changes() {
		return nil
	}
	r := audit.Record{
		Decision: ex.DecisionID, Org: ex.Caller.Org, Team: ex.Caller.Team, Key: ex.Caller.Key, Subject: ex.Caller.Subject, Peer: ex.In.Peer, Dialect: ex.Event.Dialect,
		Operation: ex.Operation.ID, Kind: string(row.Kind), Verb: string(verb), Resource: ex.Params["id"],
		Lowers: PriorityOf(verb) == overload.ReducesCost,
	}
	if after, ok := ex.Evaluation.Input.Resource.After.(map[string]any); ok {
		r.Name, _ = after["name"].(string)
	}
	r.Labels = string(ex.Body.Labels)
	if h := ex.Cost.Reservation; h != nil && !h.Free {
		r.PerHour = json.Number(catalog.Money(h.Current[ledger.Burn]).String())
	}
	var err error
	if ex.auditSeq, err = ex.RecordIntent(r); err != nil {
		return err
	}
	if verb == operation.VerbCreate {
		ex.Out.Buffered = true // it says which resource was made
	}
	return nil
}

// RecordIntent records what the call is about to change, and returns the number of the line, 0 where no log is kept. What cannot
// be recorded is refused with a 503.
func (ex *Exchange) RecordIntent(r audit.Record) (seq int64, err error) {
	if ex.Ports.Audit == nil {
		return 0, nil
	}
	seq, err = ex.Ports.Audit.Intent(r)
	if err != nil {
		return 0, problem.AuditUnavailable.New("what is changed must be recorded, and cannot be at the moment").With("Retry-After", "5").Because(err)
	}
	return seq, nil
}

// RecordRead records that a lead looks at its team. A log that cannot be written refuses no look.
func (ex *Exchange) RecordRead() {
	if ex.Ports.Audit == nil {
		return
	}
	err := ex.Ports.Audit.Read(audit.Record{
		Org: ex.Caller.Org, Team: ex.Caller.Team, Key: ex.Caller.Key, Peer: ex.In.Peer, Dialect: string(route.V2),
		Operation: ex.Route.ID, Resource: ex.Params["id"], Query: audit.Look(ex.Query),
	})
	if err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err
	}
}

// Response writes the result.
func (Audit) Response(_ context.Context, ex *Exchange) error {
	if ex.auditSeq == 0 {
		return nil
	}
	r := audit.Record{Decision: ex.DecisionID, Resource: ex.Adopted, Status: ex.Response.Status, Carried: [...]string{"not sent", "sent", "answered"}[ex.Sent]}
	if r.Resource == "" && ex.Sent == Answered && ex.Response.Status < http.StatusMultipleChoices {
		r.Resource, _ = ex.Response.UpstreamObject()["id"].(string)
	}
	if err := ex.Ports.Audit.Result(ex.auditSeq, r); err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err // the intent is there
	}
	return nil
}
