package explain

import (
	"context"
	"encoding/json"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Estimate is the predicted outcome of a request as shown to its caller; see docs/estimate.schema.json.
type Estimate struct {
	Outcome
	// Calls are the v2 calls that the request would cause. For a v2 request, this is the request itself.
	Calls []EstimatedCall `json:"calls"`
}

// Outcome is the predicted outcome of a request or call. Status, Refusal and Detail are set only for refusals.
type Outcome struct {
	Verdict Verdict `json:"verdict"`
	Status  int     `json:"status,omitempty"`
	Refusal string  `json:"refusal,omitempty"`
	Detail  string  `json:"detail,omitempty"`
}

// EstimatedCall is the predicted outcome of one v2 call.
type EstimatedCall struct {
	Operation string `json:"operation"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	Outcome
	// Cost is the maximum cost of the call, or nil if the call has no price.
	Cost *EstimatedCost `json:"cost,omitempty"`
	// Policies are the policies that deny, warn about or change the call.
	Policies []Policy `json:"policies,omitempty"`
	// Budgets are the caller's budgets that apply to the call.
	Budgets []EstimatedBudget `json:"budgets,omitempty"`
}

// EstimatedCost is a cost in USD; a month has 730 hours. Reason explains why the cost is unknown.
type EstimatedCost struct {
	USDPerHour  json.Number `json:"usd_per_hour,omitempty"`
	USDPerMonth json.Number `json:"usd_per_month,omitempty"`
	Basis       string      `json:"basis,omitempty"`
	Reason      string      `json:"reason,omitempty"`
}

// EstimatedBudget describes one budget in a prediction: its limit, and the amounts in use before and after the call.
type EstimatedBudget struct {
	Budget string      `json:"budget"`
	Limit  json.Number `json:"limit"`
	Before json.Number `json:"before"`
	After  json.Number `json:"after"`
}

// countedAlready is a filter.Counter for requests that have already been counted.
type countedAlready struct{}

// Take implements filter.Counter.
func (countedAlready) Take(context.Context, ratelimit.Take) (ratelimit.Decision, error) {
	return ratelimit.Decision{Allowed: true}, nil
}

// Estimate predicts the outcome of the request in an exchange and records the prediction in its event. The rate limiter must already have
// counted the request.
func (r *DryRun) Estimate(ctx context.Context, of *filter.Exchange) *Estimate {
	caller := of.Caller
	ports := r.ports()
	ports.Counter = countedAlready{}
	ex, done := r.exchange(ctx, of.In.ForDryRun(), caller, ports)
	defer done()
	w := r.reporter(ctx, caller)
	how, e := w.outcome(ex), ex.Event
	of.Event.DryRun = &filter.Prediction{
		Verdict: string(how.Verdict), Status: how.Status, Refusal: how.Refusal, Stage: how.stage, Detail: how.Detail,
		Denied: e.Denied, Warned: e.Warned, Shadowed: e.Shadowed, Excepted: e.Excepted, Changed: e.Changed,
	}
	out := &Estimate{Outcome: how.Outcome, Calls: []EstimatedCall{}}
	if _, call := ex.Stages(); len(call) > 0 && ex.Operation != nil {
		out.Calls = append(out.Calls, w.estimate(ex))
	}
	for _, c := range ex.Calls {
		out.Calls = append(out.Calls, w.estimate(c))
	}
	return out
}

// estimate returns the prediction for one call, limited to what its caller may see.
func (w *reporter) estimate(ex *filter.Exchange) EstimatedCall {
	c := EstimatedCall{Operation: ex.Operation.ID, Method: ex.Operation.Method, Path: ex.Target(), Outcome: w.outcome(ex).Outcome}
	if in := ex.Evaluation.Input; in != nil {
		switch {
		case ex.Event.Priced:
			monthly := catalog.Monthly(in.Cost.Hourly)
			c.Cost = &EstimatedCost{
				USDPerHour:  json.Number(in.Cost.Hourly.String()),
				USDPerMonth: json.Number(monthly.String()), Basis: in.Cost.Basis,
			}
		case in.Cost.Reason != "":
			c.Cost = &EstimatedCost{Reason: in.Cost.Reason}
		}
	}
	c.Policies = ForCaller(ResultsOf(&ex.Evaluation.Verdict))
	for _, b := range ex.Ceilings() {
		number := func(n int64) json.Number { return json.Number(ledger.AmountText(b.Index, n)) }
		c.Budgets = append(c.Budgets, EstimatedBudget{
			Budget: b.Name(), Limit: number(b.Limit), Before: number(b.Used + b.Reserved), After: number(b.Sum()),
		})
	}
	return c
}

// ForCaller returns the denials, warnings and changes in all. It omits every other result, such as the results of policies in shadow mode,
// which callers must not see.
func ForCaller(all []Policy) (visible []Policy) {
	for _, p := range all {
		switch p.Verdict {
		case verdictDenies, verdictWarns, verdictChanges:
			p.Doc = ""
			visible = append(visible, p)
		}
	}
	return visible
}
