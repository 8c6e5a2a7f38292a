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

// Reserve checks each call against the budgets of its owner. It reserves the maximum cost before the call is sent to the platform, and
// commits or releases the reservation after the response. It runs after the policy check, which computes the state that results from the
// call.
type Reserve struct {
	// Reader reads the endpoint of a run, and a resource after a call that should free budget. Workers is the operation that reads the workers
	// of an endpoint, which count as long as they exist.
	Reader  *filter.Reader
	Workers *schema.Operation
	// Sandbox is the operation that reads a sandbox.
	Sandbox *schema.Operation
	// Unresolved is the maximum duration of the search for a resource that a call with an unknown outcome may have created.
	Unresolved time.Duration
	// Costs are the costs of recent runs.
	Costs *ledger.RunCosts
	// StreamOptions remembers the endpoints that reject requests for usage reports; required.
	StreamOptions *StreamOptions
}

// stageReserve is the name of the stage.
const stageReserve = "reserve budget"

// Name implements Filter.
func (*Reserve) Name() string { return stageReserve }

// Request implements Filter. It refuses a call with 402 if the call would exceed a budget and was not approved, with 403 if the price is
// unknown and a budget in money applies, and with 503 if the call raises cost while the ledger is unavailable. It never refuses a call that
// lowers cost.
func (f *Reserve) Request(ctx context.Context, ex *filter.Exchange) error {
	plan := ex.Tenant.Budgets
	row, _ := operation.Lookup(ex.Operation.ID)
	verb := row.EffectiveVerb(ex.Evaluation.Input.Request.Body)
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
	r, raises, err := f.reservation(ex, plan, row.Kind, verb)
	if err != nil {
		return err
	}
	ex.Cost.Reservation = r
	return admit(ctx, ex, raises)
}

// admit makes the reservation of a call. It returns 402 if the call would exceed a budget and was not approved.
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
		return overBudget(r.Quote.Refused) // the call now exceeds a ceiling that was not approved
	}
	return nil
}

// reserve makes the reservation of a call. A repeat gets no reservation: reserve returns an error, or the response is set.
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
		return problem.LedgerUnavailable.New("spending cannot be checked right now, so calls that cost money are refused; try again in a few seconds").
			With("Retry-After", "1").Because(err)
	default:
		ex.Event.Cause = err
	}
	return nil
}

// quote makes the reservation of a call, together with its intent if the call must not be executed twice.
func quote(ctx context.Context, ex *filter.Exchange) (q ledger.Quote, repeated bool, err error) {
	if ex.Idempotency != nil {
		return ex.Ports.Intents.Reserve(ctx, ex)
	}
	q, err = ex.Ports.Ledger.Reserve(ctx, ex.Caller.Org, ex.Tenant.Budgets, ex.Cost.Reservation.Reservation)
	return q, false, err
}

// reserved reports whether a call needs a reservation.
func reserved(ex *filter.Exchange, row operation.Spec, verb operation.Verb) bool {
	return ex.Tenant.Budgets != nil && (counted(row, verb) || ex.Tenant.Isolation.Enabled() && entered(row, verb))
}

// counted reports whether a call can change the amounts in the ledger.
func counted(row operation.Spec, verb operation.Verb) bool {
	if !ledger.IsCounted(row.Kind) || !verb.Changes() {
		return false
	}
	return row.Price != operation.PriceFree || verb == operation.VerbDelete
}

// entered reports whether a call can change the owners in the ledger, in addition to the amounts.
func entered(row operation.Spec, verb operation.Verb) bool {
	return operation.HasOwner(row.Kind) && (verb == operation.VerbCreate || verb == operation.VerbDelete)
}

// reservation returns the reservation of a call. raises reports whether the call raises the amounts of the resource.
func (f *Reserve) reservation(
	ex *filter.Exchange, plan *ledger.Plan, kind operation.Kind, verb operation.Verb,
) (r *filter.Reservation, raises bool, err error) {
	r = &filter.Reservation{ResourceKind: kind, Verb: verb, Reservation: ledger.Reservation{
		Hold: ulid.Make().String(), Kind: string(kind), Resource: ex.Params["id"],
		Owner:    ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key},
		Metadata: ledger.Metadata{Operation: ex.Operation.ID, Decision: ex.DecisionID},
	}}
	if !verb.HasResultState() {
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
			r.Metadata.EndAt = in.Time.Add(catalog.SandboxLifetime(after)).Unix()
		}
	}
	if !ledger.IsCounted(kind) {
		r.Free = true
		return r, true, nil // no amounts are reserved, but the owner must be known
	}
	if !priced && !r.Free && plan.HasCostBudget(r.Owner) {
		if ex.Evaluation.PriceErr != nil {
			return nil, false, problem.PriceUnavailable.New("a budget limits the cost of the call, and the platform's price list is unavailable; try again").
				With("Retry-After", "5").Because(ex.Evaluation.PriceErr)
		}
		return nil, false, problem.PriceUnknown.New("the price of this call is unknown, but a budget limits cost: " + in.Cost.Reason)
	}
	return r, raises, nil
}

// seconds returns a time in Unix seconds, 0 for the zero time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// waive lets a call exceed ceilings if their budgets are approvable and the call was approved. It returns the names of these ceilings, or
// the refusal.
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

// overBudget returns the refusal for an exceeded budget.
func overBudget(c *ledger.Ceiling) *problem.Problem {
	unit := ""
	switch {
	case c.Index == ledger.PerHour:
		unit = " USD per hour"
	case ledger.IsMoney(c.Index):
		unit = " USD"
	}
	amount := func(n int64) string { return ledger.AmountText(c.Index, n) }
	p := problem.BudgetExceeded.Newf("budget %s exceeded: limit %s%s, used %s, reserved %s, needed %s",
		c.Name(), amount(c.Limit), unit, amount(c.Used), amount(c.Reserved), amount(c.Needs))
	p.Shortfall = &problem.Shortfall{
		Budget: c.Name(), Limit: json.Number(amount(c.Limit)), Used: json.Number(amount(c.Used)),
		Reserved: json.Number(amount(c.Reserved)), Needs: json.Number(amount(c.Needs)),
	}
	if !c.RenewsAt.IsZero() {
		p.RoomAt = &c.RenewsAt
		p.Detail += "; the budget period ends at " + c.RenewsAt.Format(time.RFC3339)
	}
	return p
}

// Notes implements Explainer.
func (*Reserve) Notes(ex *filter.Exchange, _ string) []string {
	r := ex.Cost.Reservation
	if r == nil || r.Quote.Refused != nil {
		return nil
	}
	if !r.Admitted {
		return []string{"the spending ledger was unavailable"}
	}
	var notes []string
	switch {
	case r.ResourceKind == operation.KindJob:
		notes = append(notes, fmt.Sprintf("costs up to %s USD", catalog.Money(r.After[ledger.Cost])))
	case !r.Free:
		notes = append(notes, fmt.Sprintf("costs %s USD per hour", catalog.Money(r.Current[ledger.Burn])))
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
		notes = append(notes, "allowed by approval "+ex.Evaluation.Verdict.Excepted[len(ex.Evaluation.Verdict.Excepted)-1].Exception+": "+strings.Join(r.Waived, ", "))
	}
	if c := r.Quote.Tightest; c != nil {
		notes = append(notes, fmt.Sprintf("tightest budget: %s, %s of %s left", c.Name(), ledger.AmountText(c.Index, c.Remaining()),
			ledger.AmountText(c.Index, c.Limit)))
	}
	return notes
}

// Response implements filter.ResponseFilter. It settles the reservation and adds the budget headers to the response. If the outcome of the
// call is unknown, the hold stays open, and the reconciler settles it later.
func (f *Reserve) Response(ctx context.Context, ex *filter.Exchange) error {
	r := ex.Cost.Reservation
	row, _ := operation.Lookup(ex.Operation.ID)
	answered := ex.Sent == filter.Answered && ex.Event.UpstreamStatus/100 == 2
	if row.Kind == operation.KindPod && row.Verb == operation.VerbCreate && answered {
		ex.Ports.Prices.ObserveCharge(ex.Caller.Org, ex.Response.UpstreamObject())
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
	if s.Resource != "" {
		r.SetResource(s.Resource)
	}
	end(ctx, ex, s)
	if s.End == ledger.Commit && !s.Gone {
		r.Current = s.Amounts
	}
	r.Charged = s.End == ledger.Commit || s.ResolveWithin > 0
	r.WriteHeaders(ex.Response.Header)
	return nil
}

// end writes a settlement to the ledger, together with the end of the intent.
func end(ctx context.Context, ex *filter.Exchange, s *ledger.Settlement) {
	if ex.Cost.Reservation != nil { // nil for a read of a job
		s.Intent = ex.Cost.Reservation.Revocation
	}
	var err error
	if ex.Idempotency != nil {
		err = ex.Ports.Intents.End(ctx, ex, s, filter.DeliveryPending)
	} else {
		err = ex.Settle(ctx, s)
	}
	ex.RecordFailure(err) // the settlement is queued, and delivered when the store responds
}

// settlement returns the settlement of a call. It depends on whether the call was sent and on the platform's response.
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
		open.ResolveWithin = 0 // the resource is searched for once
		return open
	case status == http.StatusNotFound && r.Verb == operation.VerbDelete && r.Admitted && r.Owner != (ledger.Owner{}):
		return f.removed(ctx, ex, r) // the ledger has the resource, and an earlier call may have deleted it
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
		s.From = ledger.StartTime(catalog.TimeMember(record, "createdAt"), r.Quote.Now)
	}
	s.Amounts = f.takes(ctx, ex, r, record, f.working(ctx, ex, r))
	return s
}

// takes returns the amounts of a resource according to the platform's response, with the current workers of an endpoint.
func (*Reserve) takes(
	ctx context.Context, ex *filter.Exchange, r *filter.Reservation, record map[string]any, workers int64,
) ledger.Amounts {
	if r.Verb != operation.VerbStop && r.Verb != operation.VerbUpdate && catalog.PodStopped(record) {
		return r.After // the pod was started, and its next read reports the amounts
	}
	if catalog.ImplausibleMember(r.ResourceKind, record) != "" && r.Verb.HasResultState() {
		return r.After
	}
	prices, _ := ex.Prices(ctx) // without prices, the amounts are not priced
	amounts, priced := ex.Tenant.Budgets.Footprint(r.ResourceKind, record, workers, prices)
	if !priced {
		amounts.PricedAs(r.After)
	}
	return amounts
}
