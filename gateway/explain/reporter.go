package explain

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/policies"
)

// refusalOfPlatform is the refusal reported for an error of the platform.
const refusalOfPlatform = "platform"

// reporter builds reports on ended exchanges.
type reporter struct {
	noters filter.Explainers
	// dry is the dry run of the exchange, nil for a real one.
	dry *DryRun
	// decide evaluates the policies of the caller's organisation. It is set together with dry.
	decide func(in *policies.Input) (policies.Decision, error)
}

// outcome is the outcome of an exchange or call.
type outcome struct {
	Outcome
	stage string // that refused the request
}

// outcome returns the outcome of an exchange.
func (w *reporter) outcome(ex *filter.Exchange) outcome {
	e := ex.Event
	out := outcome{Outcome{Allowed, e.Status, e.Refusal, e.Detail}, e.Stage}
	switch {
	case w.dry == nil && e.DryRun != nil:
		p := e.DryRun
		return outcome{Outcome{Verdict(p.Verdict), p.Status, p.Refusal, p.Detail}, p.Stage}
	case w.dry == nil:
		if e.Refusal != "" {
			out.Verdict = Refused
		}
		return out
	case e.Refusal == "" && !failed(ex):
		return outcome{Outcome: Outcome{Verdict: Allowed}}
	case e.Refusal == "":
		out.Refusal, out.stage = refusalOfPlatform, ex.Stage()
		for _, c := range ex.Calls { // GraphQL reports errors with status 200
			if inner := w.outcome(c); inner.Verdict != Allowed {
				out.Refusal, out.Detail = inner.Refusal, inner.Detail
			}
		}
	}
	out.Verdict = Refused
	if w.unknown(ex) {
		out.Verdict = Unknown
	}
	return out
}

// unknown reports whether the outcome depends on facts that were not read.
func (w *reporter) unknown(ex *filter.Exchange) bool {
	return errors.Is(ex.Event.Cause, errOffline) || slices.ContainsFunc(ex.Calls, w.unknown) || w.dependsOnPrice(ex)
}

// dependsOnPrice reports whether policies deny a call only because its price was not read.
func (w *reporter) dependsOnPrice(ex *filter.Exchange) bool {
	if !w.dry.Offline || len(ex.Evaluation.Verdict.Deny) == 0 || ex.Evaluation.Input.Cost.Known {
		return false
	}
	free := *ex.Evaluation.Input
	free.Cost = policies.Cost{Known: true}
	d, err := w.decide(&free)
	return err == nil && len(d.Deny) == 0
}

// OrApprove begins the line of [Report.ToPass] that names the command to approve a request.
const OrApprove = "or have it approved"

// report returns the report on an exchange.
func (w *reporter) report(ex *filter.Exchange) *Report {
	e := ex.Event
	how := w.outcome(ex)
	x := &Report{
		Dry: w.dry != nil || e.DryRun != nil, Time: e.Start, Revision: e.Revision, Method: e.Method, Path: ex.In.Path,
		Dialect: e.Dialect, Operation: e.Operation,
		Caller: callerOf(ex.Caller), Calls: []Call{},
		Verdict: how.Verdict, Status: how.Status, Refusal: how.Refusal, Stage: how.stage, Detail: how.Detail,
		PolicyNames: PolicyNames{e.Denied, e.Warned, e.Shadowed, e.Excepted, e.Changed},
	}
	if p := e.DryRun; p != nil {
		x.PolicyNames = PolicyNames{p.Denied, p.Warned, p.Shadowed, p.Excepted, p.Changed}
	}
	if x.Verdict == Refused {
		x.Approval = e.Approval
	}
	if w.dry == nil {
		x.DecisionID, x.RequestID = e.DecisionID, e.RequestID
	}
	request, call := ex.Stages()
	x.Resource, x.DurationMs, x.PlatformMs = resourceOf(ex), milliseconds(ex.Duration()), milliseconds(e.UpstreamLatency)
	if x.Dry {
		x.DurationMs, x.PlatformMs = 0, 0
	}
	x.Stages = w.stages(ex, request, 0)
	if len(call) > 0 && ex.Operation != nil { // a v2 request
		x.Calls = append(x.Calls, w.call(ex))
	}
	for _, c := range ex.Calls {
		x.Calls = append(x.Calls, w.call(c))
	}
	x.ToPass = toPass(x)
	if x.Approval != "" {
		x.ToPass = append(x.ToPass, OrApprove+fmt.Sprintf(": tollgate approvals grant %s %s", x.Caller.Org, x.Approval))
	}
	return x
}

// call returns the report on a call of v2 or of the run interface.
func (w *reporter) call(ex *filter.Exchange) Call {
	before, stages := ex.Stages()
	c := Call{
		Operation: ex.Operation.ID, Method: ex.Operation.Method, Path: ex.Target(),
		Outcome: w.outcome(ex).Outcome, Stages: w.stages(ex, stages, len(before)),
		PolicyRevision: ex.Evaluation.Verdict.Revision, Policies: ResultsOf(&ex.Evaluation.Verdict),
	}
	c.Budgets = budgetChecks(ex)
	if in := ex.Evaluation.Input; in != nil {
		switch {
		case ex.Event.Priced:
			c.USDPerHour, c.Basis = in.Cost.Hourly.String(), in.Cost.Basis
		case w.dry != nil && w.dry.Offline && !in.Cost.Known:
			c.Basis = "unknown: " + errOffline.Error()
		case in.Cost.Reason != "":
			c.Basis = "unknown: " + in.Cost.Reason
		}
	}
	if w.dry != nil {
		if !ex.Dialect.IsRun() { // inputs of runs are not shown
			c.Body = ex.DisplayBody()
		}
		if c.PolicyRevision != "" {
			c.Policies = w.dry.addSilent(ex.Caller, c.Policies)
		}
	}
	return c
}

// stages returns the findings of the given stages.
func (w *reporter) stages(ex *filter.Exchange, names []string, offset int) []Stage {
	e := ex.Event
	out := make([]Stage, 0, len(names))
	for i, name := range names {
		if name == filter.StageAssignIDs || slices.ContainsFunc(out, func(s Stage) bool { return s.Name == name }) {
			continue // assigning IDs is of no interest; the size is checked twice
		}
		out = append(out, Stage{Name: name, Result: resultPassed, Notes: w.noters.Notes(ex, name)})
		if t, ok := ex.StageTime(i + offset); ok && w.dry == nil {
			out[len(out)-1].StartMs, out[len(out)-1].Ms = milliseconds(t.Start), milliseconds(t.Took)
		}
	}
	if len(out) == 0 {
		return out
	}
	last := &out[len(out)-1]
	at := last
	if i := slices.IndexFunc(out, func(s Stage) bool { return s.Name == e.Stage }); i >= 0 {
		at = &out[i]
	}
	how := w.outcome(ex)
	switch {
	case how.Verdict == Unknown && errors.Is(e.Cause, errOffline):
		at.Result, at.Notes = resultUnknown, append(at.Notes, errOffline.Error())
	case e.Refusal != "" && at.Name == e.Stage:
		at.Result = resultRefused
		at.Notes = append(at.Notes, e.Detail)
		if len(ex.Evaluation.Verdict.Deny) == 0 { // denials are listed separately
			at.Notes = append(at.Notes, ex.Faults...)
		}
		if e.Cause != nil {
			at.Notes = append(at.Notes, "because: "+e.Cause.Error())
		}
	case how.Verdict != Allowed && last.Name == ex.Stage() && e.DryRun == nil:
		last.Result = string(how.Verdict)
		last.Notes = append(last.Notes, fmt.Sprintf("%d %s", e.Status, how.Detail))
	case last.Name == filter.StageAnswerLocally, last.Name == filter.StageDryRun:
		last.Result = resultAnswers
	}
	return out
}

// failed reports whether a response is an error. GraphQL errors have status 200.
func failed(ex *filter.Exchange) bool {
	return ex.Response.Status >= http.StatusBadRequest || ex.Response.Failed
}

// ResultsOf lists the results of policies, most important first.
func ResultsOf(d *policies.Decision) []Policy {
	var out []Policy
	add := func(verdict string, list []policies.Violation) {
		for _, v := range list {
			out = append(out, Policy{Policy: v.Policy, Verdict: verdict, Message: v.Message, Field: v.Pointer, Doc: v.Doc})
		}
	}
	add(verdictDenies, d.Deny)
	add(verdictWarns, d.Warn)
	add(verdictWouldDeny, d.Shadow)
	for _, x := range d.Excepted {
		out = append(out, Policy{
			Policy: x.Policy, Verdict: verdictExcepted, Field: x.Pointer, Doc: x.Doc,
			Message: fmt.Sprintf("%s (lifted by %s until %s, granted by %s)",
				x.Message, x.Exception, x.Until.UTC().Format(time.RFC3339), strings.TrimSuffix(x.GrantedBy+": "+x.Reason, ": ")),
		})
	}
	for _, m := range d.Mutate {
		out = append(out, Policy{Policy: m.Policy, Verdict: verdictChanges, Message: m.Message, Field: m.Pointer})
	}
	return out
}

// toPass lists what must change for the request to pass.
func toPass(x *Report) []string {
	if x.Verdict == Allowed {
		return nil // a refused candidate was followed by one that passed
	}
	var out []string
	for _, c := range x.Calls {
		for _, p := range c.Policies {
			line := p.Policy + ": " + p.Message
			if p.Field != "" {
				line += " (at " + filter.JSONPath(p.Field) + ")"
			}
			if p.Verdict == verdictDenies && !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
		for i := range c.Budgets {
			if c.Budgets[i].Exceeded {
				out = append(out, c.Budgets[i].missing())
			}
		}
	}
	if len(out) > 0 || x.Refusal == "" {
		return out
	}
	switch {
	case x.Status == http.StatusTooManyRequests:
		return []string{"wait: " + x.Detail}
	case x.Status == http.StatusUnauthorized:
		return []string{"send a valid key"}
	case x.Status >= http.StatusInternalServerError:
		return []string{"try again later: " + strings.TrimSpace(x.Detail)}
	}
	return []string{x.Detail}
}
