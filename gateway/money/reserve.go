package money

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Reserve holds the cost of each call against its owner's budgets. The worst case
// is reserved before the platform is asked; when its answer is known, it is
// committed or released. It stands behind the judge, which knows the state that the call
// leads to.
type Reserve struct {
	// Reader reads an endpoint of the organisation, by the operation Workers its workers.
	Reader  *filter.Reader
	Workers *schema.Operation
	// Sandbox is the operation that reads a sandbox.
	Sandbox *schema.Operation
	// Unresolved is how long the gateway searches for a resource that a call with an unknown outcome may have
	// created.
	Unresolved time.Duration
	// Costs are the recent costs of runs.
	Costs *ledger.RunCosts
	// StreamOptions remembers the endpoints that refuse a request for usage reports; required.
	StreamOptions *StreamOptions
}

// stageReserve is the name of the stage.
const stageReserve = "reserve"

// Name implements Filter.
func (*Reserve) Name() string { return stageReserve }

// Request refuses with 402 a call that no budget has room for unless it was approved, with 403 one without a known
// price while a budget in money applies, and with 503 one that raises cost while the
// ledger cannot be asked. A call that lowers cost is never refused.
func (f *Reserve) Request(ctx context.Context, ex *filter.Exchange) error {
	plan := ex.Tenant.Budgets
	row, _ := operation.Of(ex.Operation.ID)
	verb := row.Does(ex.Evaluation.Input.Request.Body)
	if row.Kind == operation.KindJob {
		return f.requestRun(ctx, ex, &row)
	}
	if row.Kind == operation.KindSandbox && verb == operation.VerbDelete && plan != nil {
		f.observeBeforeDelete(ctx, ex)
	}
	if !reserved(ex, row, verb) {
		if ex.Idempotency == nil {
			return nil
		}
		_, _, err := ex.Ports.Intents.Reserve(ctx, ex)
		return err
	}
	ex.BufferResponse()
	r, raises, err := f.asks(ex, plan, row.Kind, verb)
	if err != nil {
		return err
	}
	ex.Cost.Reservation = r
	return admit(ctx, ex, raises)
}

// admit asks the ledger for room, and refuses with 402 a call without room that was not
// approved.
func admit(ctx context.Context, ex *filter.Exchange, raises bool) error {
	r := ex.Cost.Reservation
	if err := reserve(ctx, ex, raises); err != nil || ex.Response != nil || r.Quote.Refused == nil {
		return err
	}
	var err error
	if r.Waived, err = waive(ctx, ex, &r.Quote); err != nil {
		return err
	}
	if err := reserve(ctx, ex, raises); err != nil {
		return err
	}
	if r.Quote.Refused != nil {
		return overBudget(r.Quote.Refused) // a ceiling that was not approved is passed by now
	}
	return nil
}

// reserve asks the ledger for room, unless the call turns out to be a repeat that is
// answered.
func reserve(ctx context.Context, ex *filter.Exchange, raises bool) error {
	r := ex.Cost.Reservation
	q, repeated, err := quote(ctx, ex)
	r.Quote = q
	switch {
	case repeated:
		ex.Cost.Reservation = nil
		return err
	case err == nil:
		r.Admitted, r.Owner = true, q.Owner
	case raises:
		return problem.LedgerUnavailable.New("the ledger of spending cannot be asked at the moment, and this call raises what is spent").
			With("Retry-After", "1").Because(err)
	default:
		ex.Event.Cause = err
	}
	return nil
}

// quote makes the reservation of a call, together with its intent if the call must not be made twice.
func quote(ctx context.Context, ex *filter.Exchange) (q ledger.Quote, repeated bool, err error) {
	if ex.Idempotency != nil {
		return ex.Ports.Intents.Reserve(ctx, ex)
	}
	q, err = ex.Ports.Ledger.Reserve(ctx, ex.Caller.Org, ex.Tenant.Budgets, ex.Cost.Reservation.Reservation)
	return q, false, err
}

// reserved reports whether the ledger is asked before a call is made.
func reserved(ex *filter.Exchange, row operation.Row, verb operation.Verb) bool {
	return ex.Tenant.Budgets != nil && (counted(row, verb) || ex.Tenant.Isolation.Enabled() && entered(row, verb))
}

// counted reports whether a call can change the amounts in the ledger.
func counted(row operation.Row, verb operation.Verb) bool {
	if !ledger.IsCounted(row.Kind) || !verb.Changes() {
		return false
	}
	return row.Price != operation.PriceFree || verb == operation.VerbDelete
}

// entered reports whether a call can change the owners in the ledger beside
// its amounts.
func entered(row operation.Row, verb operation.Verb) bool {
	return operation.Owned(row.Kind) && (verb == operation.VerbCreate || verb == operation.VerbDelete)
}

// asks is the reservation of a call, and whether it raises its resource's amounts.
func (f *Reserve) asks(ex *filter.Exchange, plan *ledger.Plan, kind operation.Kind, verb operation.Verb) (r *filter.Reservation, raises bool, err error) {
	r = &filter.Reservation{ResourceKind: kind, Verb: verb, Reservation: ledger.Reservation{
		Hold: ulid.Make().String(), Kind: string(kind), Resource: ex.Params["id"],
		Owner:    ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key},
		Metadata: ledger.Metadata{Operation: ex.Operation.ID, Decision: ex.DecisionID},
	}}
	if !verb.HasAfter() {
		r.Free = true
		return r, false, nil
	}
	in := ex.Evaluation.Input
	after, _ := in.Resource.After.(map[string]any)
	current, _ := in.Resource.Current.(map[string]any)
	before := &r.Before
	if current != nil {
		*before, _ = plan.Footprint(kind, current, 0, in.Catalog)
	}
	var priced bool
	if r.After, priced = plan.Footprint(kind, after, 0, in.Catalog); r.After[ledger.Burn] < before[ledger.Burn] && !priced {
		r.After[ledger.Burn] = before[ledger.Burn]
	}
	priced = priced && !ex.SendsUnknown()
	r.Current = r.After
	raises = r.After.Above(*before) || !priced
	r.Free = current != nil && !raises && r.After != *before
	if o := ex.Idempotency; o != nil {
		r.Hold = o.Intent.ID
	}
	if verb == operation.VerbCreate {
		r.Metadata.Name, _ = after["name"].(string)
		r.Metadata.Description, r.Metadata.Labels = ledger.Describe(kind, after), ex.Body.Labels
		r.Metadata.GPU, r.Metadata.DataCenter = ledger.Machine(kind, after)
		r.Metadata.StopAt, r.Metadata.EndAt = seconds(ex.Translation.StopAt), seconds(ex.Translation.TerminateAt)
		if kind == operation.KindSandbox {
			r.Metadata.EndAt = in.Time.Add(catalog.Lifetime(after)).Unix()
		}
	}
	if !ledger.IsCounted(kind) {
		r.Free = true
		return r, true, nil // it takes nothing, but it must be known whose it is
	}
	if !priced && !r.Free && plan.HasCostBudget(r.Owner) {
		if ex.Evaluation.PriceErr != nil {
			return nil, false, problem.PriceUnavailable.New("the platform's price list cannot be read at the moment, and a budget in money applies").
				With("Retry-After", "5").Because(ex.Evaluation.PriceErr)
		}
		return nil, false, problem.PriceUnknown.New("the price of this call is unknown, and a budget in money applies: " + in.Cost.Reason)
	}
	return r, raises, nil
}

// seconds is a time in Unix seconds, 0 for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// waive lets a call pass the ceilings it would pass over, if the budgets of all are
// approvable and it was approved: it returns their names, and otherwise the refusal.
func waive(ctx context.Context, ex *filter.Exchange, q *ledger.Quote) (waived []string, err error) {
	p := overBudget(q.Refused)
	var passed []policies.Violation
	for _, c := range q.Ceilings {
		if !c.Exceeded() {
			continue
		}
		if !ex.Tenant.Budgets.Budget(c.Scope).Approvable {
			return nil, p
		}
		waived = append(waived, c.Name())
		passed = append(passed, policies.Violation{Policy: "budget " + c.Name(), Message: overBudget(c).Detail})
	}
	lifted := ex.Ports.Approvals.Approve(ctx, ex, passed, p)
	if lifted == nil {
		return nil, p
	}
	ex.ApplyExceptions(ctx, lifted)
	return waived, nil
}

// overBudget is the refusal that names a budget.
func overBudget(c *ledger.Ceiling) *problem.Problem {
	unit := ""
	switch {
	case c.Index == ledger.PerHour:
		unit = " USD per hour"
	case ledger.IsMoney(c.Index):
		unit = " USD"
	}
	amount := func(n int64) string { return ledger.AmountText(c.Index, n) }
	p := problem.BudgetExceeded.Newf("no room in the budget %s: of %s%s, %s are used and %s reserved, and this call needs %s",
		c.Name(), amount(c.Limit), unit, amount(c.Used), amount(c.Reserved), amount(c.Needs))
	p.Shortfall = &problem.Shortfall{
		Budget: c.Name(), Limit: json.Number(amount(c.Limit)), Used: json.Number(amount(c.Used)),
		Reserved: json.Number(amount(c.Reserved)), Needs: json.Number(amount(c.Needs)),
	}
	if !c.RenewsAt.IsZero() {
		p.RoomAt = &c.RenewsAt
		p.Detail += "; room may return at " + c.RenewsAt.Format(time.RFC3339)
	}
	return p
}

// Notes implements Noter.
func (*Reserve) Notes(ex *filter.Exchange, _ string) []string {
	r := ex.Cost.Reservation
	if r == nil || r.Quote.Refused != nil {
		return nil
	}
	if !r.Admitted {
		return []string{"the ledger could not be asked"}
	}
	var notes []string
	switch {
	case r.ResourceKind == operation.KindJob:
		notes = append(notes, fmt.Sprintf("costs %s USD at most", catalog.Money(r.After[ledger.Cost])))
	case !r.Free:
		notes = append(notes, fmt.Sprintf("takes %s USD per hour", catalog.Money(r.Current[ledger.Burn])))
	}
	for _, deadline := range []struct {
		what string
		at   int64
	}{{"stopped", r.Metadata.StopAt}, {"terminated", r.Metadata.EndAt}} {
		if deadline.at != 0 {
			notes = append(notes, "will be "+deadline.what+" at "+time.Unix(deadline.at, 0).UTC().Format(time.RFC3339))
		}
	}
	if len(r.Waived) > 0 {
		notes = append(notes, "passes by approval "+ex.Evaluation.Verdict.Excepted[len(ex.Evaluation.Verdict.Excepted)-1].Exception+": "+strings.Join(r.Waived, ", "))
	}
	if c := r.Quote.Tightest; c != nil {
		notes = append(notes, fmt.Sprintf("tightest budget: %s, %s of %s left", c.Name(), ledger.AmountText(c.Index, c.Remaining()), ledger.AmountText(c.Index, c.Limit)))
	}
	return notes
}

// Response ends the reservation, or opens it when the outcome of the
// call is not known, and tells the caller of its budgets.
func (f *Reserve) Response(ctx context.Context, ex *filter.Exchange) error {
	r := ex.Cost.Reservation
	row, _ := operation.Of(ex.Operation.ID)
	answered := ex.Sent == filter.Answered && ex.Event.UpstreamStatus/100 == 2
	if row.Kind == operation.KindPod && row.Verb == operation.VerbCreate && answered {
		ex.Ports.Prices.Charged(ex.Caller.Org, ex.Response.UpstreamObject())
	}
	switch {
	case r != nil && r.Quote.Refused != nil:
		return nil
	case row.Kind == operation.KindJob:
		f.responseRun(ctx, ex, &row)
		return nil
	case row.Kind == operation.KindSandbox && row.Verb == operation.VerbRead && answered && ex.Tenant.Budgets != nil:
		observe(ctx, ex, &row)
		return nil
	case r == nil:
		return nil
	}
	s := f.settlement(ctx, ex, r)
	s.Hold, s.Owner, s.Metadata = r.Hold, r.Owner, r.Metadata
	end(ctx, ex, s)
	if s.End == ledger.Commit && !s.Gone {
		r.Current = s.Amounts
	}
	r.Charged = s.End == ledger.Commit || s.ResolveWithin > 0
	r.WriteHeaders(ex.Response.Header)
	return nil
}

// end carries a settlement out, and ends the intent with it.
func end(ctx context.Context, ex *filter.Exchange, s *ledger.Settlement) {
	if ex.Cost.Reservation != nil { // not so for a read of a job
		s.Intent = ex.Cost.Reservation.Revocation
	}
	var err error
	if ex.Idempotency != nil {
		err = ex.Ports.Intents.End(ctx, ex, s)
	} else {
		err = ex.Settle(ctx, s)
	}
	ex.RecordFailure(err) // it is queued, and delivered when the store answers
}

// settlement returns the outcome of a call, by how far it came and by the
// platform's answer.
func (f *Reserve) settlement(ctx context.Context, ex *filter.Exchange, r *filter.Reservation) *ledger.Settlement {
	open := &ledger.Settlement{End: ledger.Open, ResolveWithin: f.Unresolved}
	status := ex.Event.UpstreamStatus
	switch {
	case ex.Adopted != "":
	case ex.Sent == filter.NotSent:
		return &ledger.Settlement{End: ledger.Release}
	case ex.Sent != filter.Answered:
		return open
	case filter.IsFailureStatus(status):
		open.ResolveWithin = 0 // it is looked for once
		return open
	case filter.IsRefusalStatus(status):
		return &ledger.Settlement{End: ledger.Release}
	case status < http.StatusOK || status >= http.StatusMultipleChoices:
		return open
	}
	if r.Verb == operation.VerbDelete {
		return f.removed(ctx, ex, r)
	}
	s := &ledger.Settlement{End: ledger.Commit, Kind: r.Kind, Resource: r.Resource}
	record := ex.Response.UpstreamObject()
	id, _ := record["id"].(string)
	if id == "" || s.Resource != "" && id != s.Resource {
		return open
	}
	s.Resource = id
	if r.ResourceKind == operation.KindSandbox {
		s.From = ledger.StartTime(catalog.Instant(record, "createdAt"), r.Quote.Now)
	}
	s.Amounts = f.takes(ctx, ex, r, record, f.working(ctx, ex, r))
	return s
}

// takes are the amounts of a resource by the platform's answer, with the present workers of
// an endpoint.
func (*Reserve) takes(ctx context.Context, ex *filter.Exchange, r *filter.Reservation, record map[string]any, workers int64) ledger.Amounts {
	if r.Verb != operation.VerbStop && r.Verb != operation.VerbUpdate && catalog.Stopped(record) {
		return r.After // it was started, and will say so
	}
	if catalog.Implausible(r.ResourceKind, record) != "" && r.Verb.HasAfter() {
		return r.After
	}
	prices, err := ex.Prices(ctx)
	if err != nil {
		prices = nil
	}
	amounts, priced := ex.Tenant.Budgets.Footprint(r.ResourceKind, record, workers, prices)
	if !priced {
		amounts.PricedAs(r.After)
	}
	return amounts
}
