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

// refusalOfPlatform is the kind of a refusal that is not the gateway's.
const refusalOfPlatform = "platform"

// reporter finds the words for an exchange that has ended.
type reporter struct {
	noters filter.Explainers
	// dry is the run the exchange was part of, nil for one that took place.
	dry *DryRun
	// decide asks the policies of the caller's organisation; set with dry.
	decide func(in *policies.Input) (policies.Decision, error)
}

// outcome is how an exchange, or one call of it, ended.
type outcome struct {
	verdict                Verdict
	status                 int
	refusal, stage, detail string
}

// outcome reads off an exchange how it ended.
func (w *reporter) outcome(ex *filter.Exchange) outcome {
	e := ex.Event
	out := outcome{Allowed, e.Status, e.Refusal, e.Stage, e.Detail}
	switch {
	case w.dry == nil && e.DryRun != nil:
		p := e.DryRun
		return outcome{Verdict(p.Verdict), p.Status, p.Refusal, p.Stage, p.Detail}
	case w.dry == nil:
		if e.Refusal != "" {
			out.verdict = Refused
		}
		return out
	case e.Refusal == "" && !failed(ex):
		return outcome{verdict: Allowed}
	case e.Refusal == "":
		out.refusal, out.stage = refusalOfPlatform, ex.Stage()
		for _, c := range ex.Calls { // GraphQL tells of errors with status 200
			if inner := w.outcome(c); inner.verdict != Allowed {
				out.refusal, out.detail = inner.refusal, inner.detail
			}
		}
	}
	out.verdict = Refused
	if w.unknown(ex) {
		out.verdict = Unknown
	}
	return out
}

// unknown reports whether what ended an exchange is only that something was not
// read.
func (w *reporter) unknown(ex *filter.Exchange) bool {
	return errors.Is(ex.Event.Cause, ErrOffline) || slices.ContainsFunc(ex.Calls, w.unknown) || w.dependsOnPrice(ex)
}

// dependsOnPrice reports whether policies deny only because the price was not
// read.
func (w *reporter) dependsOnPrice(ex *filter.Exchange) bool {
	if !w.dry.Offline || len(ex.Evaluation.Verdict.Deny) == 0 || ex.Evaluation.Input.Cost.Known {
		return false
	}
	free := *ex.Evaluation.Input
	free.Cost = policies.Cost{Known: true}
	d, err := w.decide(&free)
	return err == nil && len(d.Deny) == 0
}

// report describes the course of an exchange.
func (w *reporter) report(ex *filter.Exchange) *Report {
	e := ex.Event
	how := w.outcome(ex)
	x := &Report{
		Dry: w.dry != nil || e.DryRun != nil, Time: e.Start, Revision: e.Revision, Method: e.Method, Path: ex.In.Path, Dialect: e.Dialect, Operation: e.Operation,
		Caller: callerOf(ex.Caller), Calls: []Call{},
		Verdict: how.verdict, Status: how.status, Refusal: how.refusal, Stage: how.stage, Detail: how.detail,
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
	x.Stages = w.stages(ex, request)
	if len(call) > 0 && ex.Operation != nil { // it is a call itself
		x.Calls = append(x.Calls, w.call(ex))
	}
	for _, c := range ex.Calls {
		x.Calls = append(x.Calls, w.call(c))
	}
	x.ToPass = toPass(x)
	if x.Approval != "" {
		x.ToPass = append(x.ToPass, fmt.Sprintf("or have it approved: tollgate approvals grant %s %s", x.Caller.Org, x.Approval))
	}
	return x
}

// call describes the course of a call of v2 or of the run interface.
func (w *reporter) call(ex *filter.Exchange) Call {
	how := w.outcome(ex)
	_, stages := ex.Stages()
	c := Call{
		Operation: ex.Operation.ID, Method: ex.Operation.Method, Path: ex.Target(),
		Verdict: how.verdict, Status: how.status, Refusal: how.refusal, Detail: how.detail, Stages: w.stages(ex, stages),
		PolicyRevision: ex.Evaluation.Verdict.Revision, Policies: policyResults(&ex.Evaluation.Verdict),
	}
	if in := ex.Evaluation.Input; in != nil {
		switch {
		case ex.Event.Priced:
			c.USDPerHour, c.Basis = in.Cost.Hourly.String(), in.Cost.Basis
		case w.dry != nil && w.dry.Offline && !in.Cost.Known:
			c.Basis = "unknown: " + ErrOffline.Error()
		case in.Cost.Reason != "":
			c.Basis = "unknown: " + in.Cost.Reason
		}
	}
	if w.dry != nil {
		if !ex.Dialect.IsRun() { // inputs are between callers and workers
			c.Body = ex.DisplayBody()
		}
		if c.PolicyRevision != "" {
			c.Policies = w.dry.addSilent(ex.Caller, c.Policies)
		}
	}
	return c
}

// stages lists the findings of each stage.
func (w *reporter) stages(ex *filter.Exchange, names []string) []Stage {
	e := ex.Event
	out := make([]Stage, 0, len(names))
	for _, name := range names {
		if name == "stamp" || slices.ContainsFunc(out, func(s Stage) bool { return s.Name == name }) {
			continue // gives ids and is of no interest; the size is looked at twice
		}
		out = append(out, Stage{Name: name, Result: resultPassed, Notes: w.noters.Notes(ex, name)})
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
	case how.verdict == Unknown && errors.Is(e.Cause, ErrOffline):
		at.Result, at.Notes = resultUnknown, append(at.Notes, ErrOffline.Error())
	case e.Refusal != "" && at.Name == e.Stage:
		at.Result = resultRefused
		at.Notes = append(at.Notes, e.Detail)
		if len(ex.Evaluation.Verdict.Deny) == 0 { // the policies are listed by themselves
			at.Notes = append(at.Notes, ex.Faults...)
		}
		if e.Cause != nil {
			at.Notes = append(at.Notes, "because: "+e.Cause.Error())
		}
	case how.verdict != Allowed && last.Name == ex.Stage() && e.DryRun == nil:
		last.Result = string(how.verdict)
		last.Notes = append(last.Notes, fmt.Sprintf("%d %s", e.Status, how.detail))
	case last.Name == "local", last.Name == "estimate":
		last.Result = resultAnswers
	}
	return out
}

// failed reports whether an answer refuses. GraphQL always answers 200.
func failed(ex *filter.Exchange) bool {
	return ex.Response.Status >= http.StatusBadRequest || ex.Response.Failed
}

// policyResults lists the verdicts of policies, the weightiest first.
func policyResults(d *policies.Decision) []Policy {
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
			Message: fmt.Sprintf("%s (lifted by %s until %s, granted by %s: %s)",
				x.Message, x.Exception, x.Until.UTC().Format(time.RFC3339), x.GrantedBy, x.Reason),
		})
	}
	for _, m := range d.Mutate {
		out = append(out, Policy{Policy: m.Policy, Verdict: verdictChanges, Message: m.Message, Field: m.Pointer})
	}
	return out
}

// toPass collects the changes that the request needs to pass.
func toPass(x *Report) []string {
	if x.Verdict == Allowed {
		return nil // a candidate that was refused has found a better one
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
	}
	if len(out) > 0 || x.Refusal == "" {
		return out
	}
	switch {
	case x.Status == http.StatusTooManyRequests:
		return []string{"wait: " + x.Detail}
	case x.Status == http.StatusUnauthorized:
		return []string{"send a key this gateway knows"}
	case x.Status >= http.StatusInternalServerError:
		return []string{"try again later: " + strings.TrimSpace(x.Detail)}
	}
	return []string{x.Detail}
}
