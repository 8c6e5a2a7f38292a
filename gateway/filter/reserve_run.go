package filter

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// priceOf is the price of runs on the endpoint or model of a call, if the ledger keeps
// account of them.
func priceOf(ex *Exchange) catalog.Run {
	if ex.Tenant.Budgets == nil {
		return catalog.Run{}
	}
	return ex.Tenant.Runs.Of(ex.Params["id"])
}

// requestRun reserves the most that a run can cost, or its expected cost.
func (f *Reserve) requestRun(ctx context.Context, ex *Exchange, row *operation.Row) error {
	price := priceOf(ex)
	ex.Out.Whole = price.Known() && row.Verb.Changes() && !row.Waits // such answers are short
	switch {
	case row.Verb != operation.VerbRun, ex.Operation.ID == "updateBatch", ex.Operation.ID == "finalizeBatch":
		return nil // requests added to a batch were reserved then
	case !price.Known():
		return f.unpriced(ctx, ex)
	}
	plan, owner := ex.Tenant.Budgets, spend.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}
	most, _, known := mostOf(ex, price)
	if !known && plan.Accrues(owner) {
		return problem.PriceUnknown.New("what this run costs at most cannot be determined, and a budget per day or month applies")
	}
	r := &reservation{kind: operation.KindJob, verb: row.Verb, Reservation: spend.Reservation{
		Hold: ulid.Make().String(), Kind: string(operation.KindJob), Owner: owner, After: onceOf(most),
		About: spend.About{Operation: ex.Operation.ID, Decision: ex.DecisionID, Name: ex.Params["id"]},
	}}
	if plan.Runs.Reserve == spend.ReserveExpected && expectable(ex, row) {
		if expected := onceOf(f.Costs.Expected(ex.Caller.Org, ex.Caller.Key, ex.Params["id"], most)); r.After.Above(expected) {
			r.About.Most, r.After = r.After[spend.Cost], expected
		}
	}
	r.takes, ex.Money.Held = r.After, r
	return f.admit(ctx, ex, plan, plan.Accrues(owner))
}

// onceOf are the amounts of a one-time cost.
func onceOf(cost catalog.Money) spend.Amounts {
	return spend.Amounts{spend.Cost: int64(cost)}.Clamped()
}

// expectable reports whether a call is one run, whose cost others like it
// predict: not a batch, nor a call to a load-balanced endpoint.
func expectable(ex *Exchange, row *operation.Row) bool { return !row.Opaque && !fillsBatch(ex) }

// unpriced refuses a run without a known price where a budget of a day or month
// applies, unless it is on an endpoint of the organisation: its cost is that of the
// endpoint's workers.
func (f *Reserve) unpriced(ctx context.Context, ex *Exchange) error {
	id, plan := ex.Params["id"], ex.Tenant.Budgets
	if plan == nil || !plan.Accrues(spend.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}) || ex.opaque() {
		return nil // load-balanced endpoints are not public
	}
	if !catalog.Public(id) {
		_, refusal, err := f.Reader.Recall(ctx, ex, f.Endpoint, map[string]string{"id": id})
		switch {
		case err != nil, refusal != nil && refusal.Status != http.StatusNotFound:
			return problem.PriceUnavailable.New("it cannot be determined at the moment whether this is an endpoint of the organisation, and no price of its runs is known").
				With("Retry-After", "1").Because(err)
		case refusal == nil:
			return nil
		}
	}
	return problem.PriceUnknown.New("what runs of this model cost is not known, and a budget per day or month applies")
}

// mostOf is the most that a call can cost: a run, or all that are added to a batch and
// the dearest of them.
func mostOf(ex *Exchange, price catalog.Run) (most, dearest catalog.Money, known bool) {
	body, _ := ex.Body.Doc.(map[string]any)
	switch {
	case ex.opaque():
		body = map[string]any{} // it is priced as an empty body
	case ex.Operation.ID == "retryJob":
		body = nil // that of the job is not known
	}
	if !fillsBatch(ex) {
		most, known = price.Most(body, sizeOf(ex))
		return most, most, known
	}
	requests, _ := body["requests"].([]any)
	for _, item := range requests {
		request, _ := item.(map[string]any)
		text, err := strictjson.Append(nil, request)
		one, ok := price.Most(request, int64(len(text)))
		if err != nil || !ok {
			return 0, 0, false
		}
		most, dearest = most+one, max(dearest, one)
	}
	return most, dearest, true
}

// fillsBatch reports whether a call adds requests to a batch.
func fillsBatch(ex *Exchange) bool {
	return ex.Operation.ID == "createBatch" || ex.Operation.ID == "addBatchRequests"
}

// sizeOf is the length of the body that is sent, at least.
func sizeOf(ex *Exchange) int64 {
	size := max(ex.In.Length, int64(len(ex.In.Body)))
	if ex.opaque() && ex.In.Length < 0 && ex.In.Source != nil {
		size = ex.bodyLimit()
	}
	if len(ex.Judged.Verdict.Mutate) > 0 {
		if text, err := strictjson.Append(nil, ex.Body.Doc); err == nil {
			size = max(size, int64(len(text)))
		}
	}
	return size
}

// responseRun settles the cost of a run, or the cost that the answer about a job
// states. Of an answer that streams it does so at the end.
func (f *Reserve) responseRun(ctx context.Context, ex *Exchange, row *operation.Row) {
	r, a := ex.Money.Held, ex.Answer
	price := priceOf(ex)
	switch {
	case r == nil && (!price.Known() || ex.Sent != Answered || !a.Relayed || ex.Params["jobId"] == ""):
		return
	case r == nil && a.Stream == nil:
		f.saw(ctx, ex, price)
	case r == nil:
		a.Stream = &settling{ReadCloser: a.Stream, end: func() { f.saw(ctx, ex, price) }}
	case a.Stream != nil && a.Relayed && a.Status < http.StatusBadRequest:
		a.Stream = &settling{ReadCloser: a.Stream, end: func() { f.end(ctx, ex, f.settlementRun(ex, row, price)) }}
		r.taken = true
		r.tell(a)
	default:
		s := f.settlementRun(ex, row, price)
		f.end(ctx, ex, s)
		switch {
		case s.End == spend.Commit && s.Full:
			r.takes[spend.Cost] = max(r.takes[spend.Cost], r.About.Most)
		case s.End == spend.Commit:
			r.takes = s.Amounts
		}
		r.taken = s.End != spend.Release
		r.tell(a)
	}
}

// settling is the body of an answer at whose end something is settled.
type settling struct {
	io.ReadCloser
	end  func()
	once sync.Once
}

// Read implements io.Reader.
func (s *settling) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		s.once.Do(s.end)
	}
	return n, err
}

// Close implements io.Closer. A stream closed early is settled without
// the rest of the answer.
func (s *settling) Close() error {
	s.once.Do(s.end)
	return s.ReadCloser.Close()
}

// settlementRun returns the cost of a run: the most that it can be, unless the platform
// refused it, or its answer says otherwise. Of a job that has not ended, the hold stays
// open under the job's id.
func (f *Reserve) settlementRun(ex *Exchange, row *operation.Row, price catalog.Run) *spend.Settlement {
	s := &spend.Settlement{Hold: ex.Money.Held.Hold, End: spend.Commit, Full: true}
	status, ran := ex.Event.UpstreamStatus, ex.Money.ran
	switch {
	case ex.Sent == NotSent:
		s.End = spend.Release
	case ex.Sent != Answered:
	case status >= http.StatusBadRequest && status <= http.StatusInternalServerError, status == http.StatusServiceUnavailable:
		s.End = spend.Release
	case status >= http.StatusMultipleChoices, ran == nil, row.Opaque, fillsBatch(ex):
	case ran.status == "" || ran.final():
		if amounts, known := ran.cost(ex.Params["id"], price, true); known {
			s.Amounts, s.Full = amounts, false
			f.learn(ex, row, amounts)
		}
	case ran.id != "" && len(ran.id) < maxToken:
		s.End, s.As, s.Wait = spend.Open, jobHold(ex.Params["id"], ran.id), ex.ttl()+f.Unresolved
	}
	return s
}

// learn remembers the cost of a run that was carried out. Jobs that are answered before
// they have ended teach nothing: a caller that asks for one again and again would choose the
// expected cost.
func (f *Reserve) learn(ex *Exchange, row *operation.Row, amounts spend.Amounts) {
	if amounts[spend.Cost] > 0 && ex.Money.ran.succeeded() && expectable(ex, row) {
		f.Costs.Add(ex.Caller.Org, ex.Caller.Key, ex.Params["id"], catalog.Money(amounts[spend.Cost]))
	}
}

// saw settles the cost of a job when an answer about it says that it has ended.
func (f *Reserve) saw(ctx context.Context, ex *Exchange, price catalog.Run) {
	if ex.Money.ran == nil || !ex.Money.ran.final() {
		return
	}
	whole := ex.Operation.ID == "jobStatus" || ex.Operation.ID == "jobStatusSync"
	amounts, known := ex.Money.ran.cost(ex.Params["id"], price, whole)
	if known || whole {
		f.end(ctx, ex, &spend.Settlement{Hold: jobHold(ex.Params["id"], ex.Params["jobId"]), End: spend.Commit, Amounts: amounts, Full: !known})
	}
}

// jobHold is the id of the hold of a job that was answered before it has ended.
func jobHold(endpoint, job string) string { return "job " + endpoint + " " + job }

// final reports whether a job has ended.
func (r *ran) final() bool {
	switch r.status {
	case "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT":
		return true
	}
	return false
}

// succeeded reports whether a run has ended well. A completion has no status.
func (r *ran) succeeded() bool { return r.status == "" || r.status == "COMPLETED" }

// maxRunCost bounds the cost of one run that an answer is believed to state.
const maxRunCost catalog.Money = 1000 * 1_000_000 // USD

// cost is the cost of a run of a public model or on an endpoint by its price, once it
// has ended; known is false if that does not follow from the answer, which is
// all there is to say if it is whole. A run that has failed costs the time that it
// took, and nothing otherwise (reference platform-v2, section 12.9). Of a public model
// the answer may say the cost; of an endpoint the output is its worker's word.
func (r *ran) cost(id string, price catalog.Run, whole bool) (a spend.Amounts, known bool) {
	var cost catalog.Money
	failed := !r.succeeded()
	switch {
	case failed && !whole && !r.Finished:
		return a, false
	case price.PerHour > 0:
		known = r.Finished || failed
		cost = price.OfTime(r.Executed)
	case failed:
		known = r.status == "FAILED" || r.Executed == 0
	case r.Cost > 0 && catalog.Public(id):
		said, err := catalog.ParseMoney(strconv.FormatFloat(r.Cost, 'f', -1, 64))
		cost, known = said, err == nil && said <= maxRunCost
	case price.PerRun > 0:
		cost, known = price.PerRun, true
	case price.PerTokens > 0:
		known = r.Prompt+r.Completion > 0
		cost = price.OfTokens(r.Prompt, r.Completion)
	}
	a[spend.Cost] = int64(cost)
	return a.Clamped(), known
}
