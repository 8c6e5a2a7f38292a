package money

import (
	"context"
	"net/http"
	"strconv"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// priceOf returns the price of runs on the endpoint or model of a call. The price is unknown if the organisation has no ledger.
func priceOf(ex *filter.Exchange) catalog.RunPrice {
	if ex.Tenant.Budgets == nil {
		return catalog.RunPrice{}
	}
	return ex.Tenant.Runs.For(ex.Params["id"])
}

// requestRun reserves the maximum or the expected cost of a run.
func (f *Reserve) requestRun(ctx context.Context, ex *filter.Exchange, row *operation.Spec) error {
	price := priceOf(ex)
	if price.Known() && row.Verb.Changes() && !row.Synchronous {
		ex.BufferResponse() // such responses are short
	}
	switch {
	case row.Verb != operation.VerbRun, ex.Operation.ID == "updateBatch", ex.Operation.ID == "finalizeBatch":
		return nil // reserved when the batch was created
	case price.Free:
		return nil
	case !price.Known():
		return f.unpriced(ctx, ex)
	}
	plan, owner := ex.Tenant.Budgets, ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}
	most, _, known := ex.MaxRunCost(price)
	if !known && plan.HasAccrualBudget(owner) {
		return problem.PriceUnknown.New("cannot determine the maximum cost of this run, which is required because a budget limits accrued cost")
	}
	r := &filter.Reservation{ResourceKind: operation.KindJob, Verb: row.Verb, Reservation: ledger.Reservation{
		Hold: ulid.Make().String(), Kind: string(operation.KindJob), Owner: owner, After: onceOf(most),
		Metadata: ledger.Metadata{Operation: ex.Operation.ID, Decision: ex.DecisionID, Name: ex.Params["id"]},
	}}
	if plan.Runs.Reserve == ledger.ReserveExpected && expectable(ex, row) {
		if expected := onceOf(f.Costs.Expected(ex.Caller.Org, ex.Caller.Key, ex.Params["id"], most)); r.After.Above(expected) {
			r.Metadata.MaxCost, r.After = r.After[ledger.Cost], expected
		}
	}
	r.Current, ex.Cost.Reservation = r.After, r
	if err := admit(ctx, ex, plan.HasAccrualBudget(owner)); err != nil {
		return err
	}
	if price.PerTokens > 0 {
		body, _ := ex.Body.Doc.(map[string]any)
		ex.Cost.BodySize, ex.Cost.Batch = ex.OutboundSize(), catalog.ParseTokenRequest("", body).Batch
		f.askUsage(ex)
	}
	return nil
}

// onceOf returns the amounts of a one-time cost.
func onceOf(cost catalog.Money) ledger.Amounts {
	return ledger.Amounts{ledger.Cost: int64(cost)}.Clamped()
}

// expectable reports whether a call is a single run, whose cost can be predicted from similar runs. Batches and calls to load-balanced
// endpoints are not single runs.
func expectable(ex *filter.Exchange, row *operation.Spec) bool {
	return !row.Opaque && !ex.AddsToBatch()
}

// unpriced refuses a run with an unknown price if a budget for accrued cost applies. It allows runs on endpoints of the organisation,
// because their workers are charged instead. A run whose target does not exist is refused with 404.
func (f *Reserve) unpriced(ctx context.Context, ex *filter.Exchange) error {
	plan := ex.Tenant.Budgets
	if plan == nil || !plan.HasAccrualBudget(ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}) || ex.Opaque() {
		return nil // load-balanced endpoints are not public
	}
	if own, err := f.Reader.OwnsTarget(ctx, ex); own || err != nil {
		return err
	}
	return problem.PriceUnknown.New("the price of this model is unknown, so its cost cannot be checked against the budget")
}

// responseRun settles the cost of a run, or the cost stated in a response about a job. A streamed response is settled when the stream ends.
func (f *Reserve) responseRun(ctx context.Context, ex *filter.Exchange, row *operation.Spec) {
	r, a := ex.Cost.Reservation, ex.Response
	price := priceOf(ex)
	f.StreamOptions.markRefused(ex)
	switch {
	case r == nil && (!price.Known() || ex.Sent != filter.Answered || !a.Relayed || ex.Params["jobId"] == ""):
		return
	case r == nil && a.Stream == nil:
		f.settleJob(ctx, ex, price)
	case r == nil:
		a.OnEnd(func() { f.settleJob(ctx, ex, price) })
	case a.Stream != nil && a.Relayed && a.Status < http.StatusBadRequest:
		a.OnEnd(func() { end(ctx, ex, f.settlementRun(ex, row, price)) })
		r.Charged = true
		r.WriteHeaders(a.Header)
	default:
		s := f.settlementRun(ex, row, price)
		end(ctx, ex, s)
		switch {
		case s.End == ledger.Commit && s.WholeReservation:
			r.Current[ledger.Cost] = max(r.Current[ledger.Cost], r.Metadata.MaxCost)
		case s.End == ledger.Commit:
			r.Current = s.Amounts
		}
		r.Charged = s.End != ledger.Release
		r.WriteHeaders(a.Header)
	}
}

// settlementRun returns a settlement with the cost of a run. If the response does not determine the cost, the whole reservation is charged.
// If the platform refused the run, nothing is charged. For a job that has not ended, the hold stays open under the job's ID.
func (f *Reserve) settlementRun(ex *filter.Exchange, row *operation.Spec, price catalog.RunPrice) *ledger.Settlement {
	r := ex.Cost.Reservation
	s := &ledger.Settlement{
		Hold: r.Hold, End: ledger.Commit, WholeReservation: true, Kind: r.Kind, Owner: r.Owner,
		Metadata: r.Metadata, Amounts: r.After,
	}
	status, ran := ex.Event.UpstreamStatus, ex.Cost.Run
	switch {
	case ex.Sent == filter.NotSent:
		s.End = ledger.Release
	case ex.Sent != filter.Answered:
	case status >= http.StatusBadRequest && status <= http.StatusInternalServerError, status == http.StatusServiceUnavailable:
		s.End = ledger.Release
	case status >= http.StatusMultipleChoices, ran == nil, row.Opaque, ex.AddsToBatch():
	case ran.Failed:
		s.End = ledger.Release
	case ran.Status == "" || final(ran):
		if amounts, known := costOf(atMost(ran, ex.Cost.BodySize), ex.Params["id"], price, true); known {
			s.Amounts, s.WholeReservation = amounts, false
			f.learn(ex, row, amounts)
		}
		if ran.HasID() {
			s.NewID = jobHold(ex.Params["id"], ran.ID) // so that a later response about the job finds it charged
		}
	case ran.HasID():
		s.End, s.NewID, s.ResolveWithin = ledger.Open, jobHold(ex.Params["id"], ran.ID), ex.JobRetention()+f.Unresolved
	}
	return s
}

// atMost returns ran. If the number of prompt tokens is unknown, it is replaced with size, an upper limit for it.
func atMost(ran *filter.RunReport, size int64) *filter.RunReport {
	if !ran.Partial {
		return ran
	}
	bound := *ran
	bound.Complete, bound.Prompt, bound.Cached = true, size, 0
	return &bound
}

// learn records the cost of a completed run. It ignores jobs that were returned before they ended. Otherwise a caller could influence the
// expected cost by requesting such a job repeatedly.
func (f *Reserve) learn(ex *filter.Exchange, row *operation.Spec, amounts ledger.Amounts) {
	if amounts[ledger.Cost] > 0 && succeeded(ex.Cost.Run) && expectable(ex, row) {
		f.Costs.Add(ex.Caller.Org, ex.Caller.Key, ex.Params["id"], catalog.Money(amounts[ledger.Cost]))
	}
}

// settleJob settles the cost of a job once a response shows that the job has ended.
func (f *Reserve) settleJob(ctx context.Context, ex *filter.Exchange, price catalog.RunPrice) {
	if ex.Cost.Run == nil || !final(ex.Cost.Run) {
		return
	}
	whole := ex.Operation.ID == "jobStatus" || ex.Operation.ID == "jobStatusSync"
	amounts, known := costOf(ex.Cost.Run, ex.Params["id"], price, whole)
	if known || whole {
		job := ledger.Job{Endpoint: ex.Params["id"], ID: ex.Params["jobId"]}
		end(ctx, ex, &ledger.Settlement{
			Hold: jobHold(job.Endpoint, job.ID), Job: &job, End: ledger.Commit, Amounts: amounts, WholeReservation: !known,
			Kind:     string(operation.KindJob),
			Metadata: ledger.Metadata{Operation: ex.Operation.ID, Decision: ex.DecisionID, Name: job.Endpoint},
		})
	}
}

// jobHold returns the hold ID of a job that was returned before it ended.
func jobHold(endpoint, job string) string { return "job " + endpoint + " " + job }

// final reports whether a job has ended.
func final(r *filter.RunReport) bool {
	switch r.Status {
	case "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT":
		return true
	}
	return false
}

// succeeded reports whether a run has ended successfully. A completion has no status.
func succeeded(r *filter.RunReport) bool { return r.Status == "" || r.Status == "COMPLETED" }

// maxRunCost is the highest cost of one run that is accepted from a response.
const maxRunCost catalog.Money = 1000 * 1_000_000 // USD

// costOf returns the cost of an ended run of a public model or on an endpoint, computed from its price. known is false if the response does
// not determine the cost; whole reports whether the response is complete, so that no later part can determine it. A failed run is charged
// only for its execution time (reference platform-v2, section 12.9). The response of a public model may state the cost. The output of an
// endpoint is produced by its worker and is not trusted.
func costOf(r *filter.RunReport, id string, price catalog.RunPrice, whole bool) (a ledger.Amounts, known bool) {
	var cost catalog.Money
	failed := !succeeded(r)
	switch {
	case failed && !whole && !r.Finished:
		return a, false
	case price.PerHour > 0:
		known = r.Finished || failed
		cost = price.TimeCost(r.Executed)
	case failed:
		known = r.Status == "FAILED" || r.Executed == 0
	case r.Cost > 0 && catalog.IsPublicModel(id):
		reported, err := catalog.ParseMoney(strconv.FormatFloat(r.Cost, 'f', -1, 64))
		cost, known = reported, err == nil && reported <= maxRunCost
	case price.PerRun > 0:
		cost, known = price.PerRun, true
	case price.PerTokens > 0:
		known = r.Complete
		cost = price.UsageCost(r.Prompt, r.Cached, r.Completion) + max(price.TokenCost(r.UnsplitTokens, 0), price.TokenCost(0, r.UnsplitTokens))
	}
	a[ledger.Cost] = int64(cost)
	return a.Clamped(), known
}
