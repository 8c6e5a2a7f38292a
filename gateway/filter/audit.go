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

// Audit writes calls that change something to the audit log: the intent before the call is sent, and the result once it is known. A call
// whose intent cannot be recorded is refused with 503. Calls of the run interface are not recorded, because they change nothing
// permanently.
type Audit struct{}

// Name implements Filter.
func (Audit) Name() string { return "audit" }

// Request records the intent of the call.
func (Audit) Request(_ context.Context, ex *Exchange) error {
	row, _ := operation.Lookup(ex.Operation.ID)
	if ex.Ports.Audit == nil || row.Kind == operation.KindJob {
		return nil
	}
	verb := row.EffectiveVerb(ex.Evaluation.Input.Request.Body)
	if !verb.Changes() {
		return nil
	}
	r := audit.Record{
		Decision: ex.DecisionID, Org: ex.Caller.Org, Team: ex.Caller.Team, Key: ex.Caller.Key, Subject: ex.Caller.Subject,
		Peer: ex.In.Peer, Dialect: ex.Event.Dialect,
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
		ex.Out.Buffered = true // the body contains the ID of the new resource
	}
	return nil
}

// RecordIntent appends an intent to the audit log and returns its sequence number, or 0 if there is no audit log. It returns a problem with
// status 503 if the log cannot be written.
func (ex *Exchange) RecordIntent(r audit.Record) (seq int64, err error) {
	if ex.Ports.Audit == nil {
		return 0, nil
	}
	seq, err = ex.Ports.Audit.Intent(r)
	if err != nil {
		return 0, problem.AuditUnavailable.New("the audit log cannot be written, so changes are refused; try again later").With("Retry-After",
			"5").Because(err)
	}
	return seq, nil
}

// RecordRead writes to the audit log that a lead has viewed records of the lead's team. A failure to write the log does not fail the
// request.
func (ex *Exchange) RecordRead() {
	if ex.Ports.Audit == nil {
		return
	}
	ex.RecordFailure(ex.Ports.Audit.Read(audit.Record{
		Org: ex.Caller.Org, Team: ex.Caller.Team, Key: ex.Caller.Key, Peer: ex.In.Peer, Dialect: string(route.V2),
		Operation: ex.Route.ID, Resource: ex.Params["id"], Query: audit.ReadQuery(ex.Query),
	}))
}

// Response records the result of the call.
func (Audit) Response(_ context.Context, ex *Exchange) error {
	if ex.auditSeq == 0 {
		return nil
	}
	r := audit.Record{
		Decision: ex.DecisionID, Resource: ex.Adopted, Status: ex.Response.Status,
		Carried: [...]string{"not sent", "sent", "answered"}[ex.Sent],
	}
	if r.Resource == "" && ex.Sent == Answered && ex.Response.Status < http.StatusMultipleChoices {
		r.Resource, _ = ex.Response.UpstreamObject()["id"].(string)
	}
	ex.RecordFailure(ex.Ports.Audit.Result(ex.auditSeq, r)) // the intent was recorded
	return nil
}
