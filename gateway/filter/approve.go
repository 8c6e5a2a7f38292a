package filter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// grant is one that an exchange has taken: the record as it was, and as it is now.
type grant struct {
	was *approval.Record
	now approval.Entry
}

// maxShown bounds the body that operators are shown of a request for approval.
const maxShown = 4 << 10

// approve takes the grant that lets the call pass some refusals and returns it.
// Otherwise, the refusals become a request for approval, which is told on p. Without
// a store, p remains as it is.
func (ex *Exchange) approve(ctx context.Context, refusals []approval.Refusal, p *problem.Problem) *approval.Record {
	if (*Repeats).Repeats(nil, ctx, ex) {
		return nil // Once answers it on the way out: the repeated call was allowed
	}
	question, err := ex.question()
	if err != nil {
		ex.Event.Cause = err
		return nil
	}
	e, err := ex.Ports.Approvals.Get(ctx, ex.Caller.Org, question)
	for swapped := false; err == nil && !swapped; {
		r := e.Record
		if r != nil && r.Covers(refusals) {
			switch {
			case r.State == approval.Pending || r.State == approval.Denied:
				ex.tellApproval(p, r)
				return nil
			case r.State == approval.Used && ex.Approval.grant != nil && ex.Approval.grant.now.Record.Claim == r.Claim && ex.within(r):
				return ex.Approval.grant.was
			case r.State == approval.Granted && ex.within(r):
				next := *r
				next.State, next.UsedBy, next.Claim = approval.Used, ex.DecisionID, ulid.Make().String()
				next.Until = e.Now.Add(approval.Waiting)
				if e, swapped, err = ex.Ports.Approvals.Swap(ctx, ex.Caller.Org, e, &next); swapped {
					ex.Approval.grant = &grant{was: r, now: e}
					return r
				}
				continue
			}
		}
		next := ex.ask(e, refusals)
		if r != nil && r.State == approval.Used && ex.Approval.grant == nil { // it is shown on, under its own id
			if _, _, err = ex.Ports.Approvals.Swap(ctx, ex.Caller.Org, approval.Entry{ID: r.ID}, r); err != nil {
				break
			}
		}
		if e, swapped, err = ex.Ports.Approvals.Swap(ctx, ex.Caller.Org, e, next); swapped {
			ex.Approval.grant = nil // asked for together with the grant's own denials
			ex.tellApproval(p, e.Record)
		}
	}
	if errors.Is(err, approval.ErrFull) {
		p.Detail += "; this can be approved, but too many requests for approval are pending"
	} else if err != nil {
		ex.Event.Cause = err
	}
	return nil
}

// ask returns the request for approval of some refusals and of those asked about before.
func (ex *Exchange) ask(e approval.Entry, refusals []approval.Refusal) *approval.Record {
	op := ex.Operation
	next := &approval.Record{
		ID: "ap-" + ulid.Make().String(), State: approval.Pending, Key: ex.Caller.Key, Team: ex.Caller.Team, Operation: op.ID,
		Call: op.Method + " " + expand(op.Path, ex.Params), Asks: ex.wants(), USD: ex.costs(), Per: ex.unit(), Decision: ex.DecisionID,
		Refusals: slices.Clone(refusals), Asked: e.Now, Until: e.Now.Add(approval.Waiting),
	}
	if r := e.Record; r != nil && (r.State != approval.Used || ex.Approval.grant != nil && ex.Approval.grant.now.Record.Claim == r.Claim) {
		for _, was := range r.Refusals {
			if !next.Covers([]approval.Refusal{was}) {
				next.Refusals = append(next.Refusals, was)
			}
		}
	}
	if ex.Body.HasDoc && len(ex.In.Body) <= maxShown {
		if text, err := strictjson.Append(nil, decisionlog.Masked(ex.Named())); err == nil && len(text) <= maxShown {
			next.Body = text
		}
	}
	return next
}

// question names the question when the call is refused: may this caller make this
// very call? Secrets are part of that, and do not leave the store.
func (ex *Exchange) question() (string, error) {
	if ex.Approval.question != "" {
		return ex.Approval.question, nil
	}
	in := ex.Judged.Input
	h := sha256.New()
	_, _ = io.WriteString(h, Digest(ex.Caller.Key, ex.Caller.Team, ex.Operation.ID, expand(ex.Operation.Path, ex.Params), encodeQuery(ex.Query)))
	docs := []any{in.Request.Body}
	if row, _ := operation.Of(ex.Operation.ID); row.Does(in.Request.Body) == operation.VerbCreate {
		docs = append(docs, in.Resource.After) // with its template as it is now
	}
	for _, doc := range docs {
		if err := strictjson.Write(h, doc); err != nil {
			return "", fmt.Errorf("digest of a call: %w", err)
		}
		_, _ = h.Write([]byte{'\n'})
	}
	ex.Approval.question = hex.EncodeToString(h.Sum(nil))
	return ex.Approval.question, nil
}

// wants describes the call for people: its machines, or the parts of its price.
func (ex *Exchange) wants() string {
	cost := ex.Judged.Input.Cost
	after, _ := ex.Judged.Input.Resource.After.(map[string]any)
	row, _ := operation.Of(ex.Operation.ID)
	if machine, _ := spend.Machine(row.Kind, after); machine != "" && cost.GPUs > 0 {
		return fmt.Sprintf("%d x %s", cost.GPUs, machine)
	}
	return cost.Basis
}

// unit is the unit of the call's price.
func (ex *Exchange) unit() approval.Unit {
	if row, _ := operation.Of(ex.Operation.ID); row.Kind == operation.KindJob {
		return approval.PerRun
	}
	return approval.PerHour
}

// costs is the greatest cost of the call, in USD per hour or run, "" if that is not known.
func (ex *Exchange) costs() string {
	cost := ex.Judged.Input.Cost
	if ex.unit() == approval.PerRun {
		if r := ex.Money.Held; r != nil {
			cost.Run = max(cost.Run, catalog.Money(r.After[spend.Cost]))
		}
		if cost.Run == 0 {
			return ""
		}
		return cost.Run.String()
	}
	if !cost.Known {
		return ""
	}
	if r := ex.Money.Held; r != nil && !r.Free {
		return max(cost.Hourly, catalog.Money(r.After[spend.Burn])).String()
	}
	return cost.Hourly.String()
}

// within reports whether the call costs no more than was granted.
func (ex *Exchange) within(r *approval.Record) bool {
	if r.Answer == nil {
		return false
	}
	costs, most := ex.costs(), r.Answer.MaxUSD
	if costs == "" || most == "" {
		return costs == most
	}
	price, err1 := catalog.ParseMoney(costs)
	limit, err2 := catalog.ParseMoney(most)
	return errors.Join(err1, err2) == nil && price <= limit
}

// tellApproval tells on a refusal how it can be approved, or that it was not.
func (ex *Exchange) tellApproval(p *problem.Problem, r *approval.Record) {
	switch {
	case r.State == approval.Denied:
		p.Detail += fmt.Sprintf("; approval %s was denied by %s", r.ID, r.Answer.By)
		if r.Answer.Reason != "" {
			p.Detail += ": " + r.Answer.Reason
		}
	case r.ID == "": // of a dry run, which asks for nothing
		p.Detail += "; this can be approved: the refusal of the call says how"
		return
	default:
		p.Detail += fmt.Sprintf("; this can be approved: have an operator run 'tollgate approvals grant %s %s', then repeat the call", ex.Caller.Org, r.ID)
	}
	p.Approval = &problem.Approval{ID: r.ID, State: string(r.State), Until: r.Until}
}

// excuse lets a call pass that policies deny, if all denials are approvable and were
// approved. Otherwise it returns the refusal.
func (ex *Exchange) excuse(ctx context.Context, d *policies.Decision) error {
	p := forbidden(d)
	var refusals []approval.Refusal
	for _, v := range d.Deny {
		if !v.Approvable {
			return p
		}
		refusals = append(refusals, approval.Refusal{By: v.Policy, Message: v.Message})
	}
	r := ex.approve(ctx, refusals, p)
	if r == nil {
		return p
	}
	excepted := slices.Clone(d.Excepted) // it may be a remembered one
	for _, v := range d.Deny {
		excepted = append(excepted, lifted(v, r))
	}
	d.Deny, d.Excepted = nil, excepted
	return nil
}

// lifted is a violation that a grant lets pass.
func lifted(v policies.Violation, r *approval.Record) policies.Excepted {
	return policies.Excepted{Violation: v, Exception: r.ID, Until: r.Until, Reason: r.Answer.Reason, GrantedBy: r.Answer.By}
}

// waive lets a call pass the ceilings it would pass over, if the budgets of all are
// approvable and it was approved: it returns their names, and otherwise the refusal.
func (ex *Exchange) waive(ctx context.Context, plan *spend.Plan, q *spend.Quote) (waived []string, err error) {
	p := overBudget(q.Refused)
	var refusals []approval.Refusal
	for _, c := range q.Ceilings {
		if !c.Passed() {
			continue
		}
		if !plan.Budget(c.Scope).Approvable {
			return nil, p
		}
		waived = append(waived, c.Name())
		refusals = append(refusals, approval.Refusal{By: "budget " + c.Name(), Message: overBudget(c).Detail})
	}
	r := ex.approve(ctx, refusals, p)
	if r == nil {
		return nil, p
	}
	d := ex.Judged.Verdict
	d.Excepted = slices.Clone(d.Excepted)
	for _, refusal := range refusals {
		d.Excepted = append(d.Excepted, lifted(policies.Violation{Policy: refusal.By, Message: refusal.Message}, r))
	}
	ex.authorized(d)
	ex.logDecision(ctx, d, nil, 0)
	return waived, nil
}

// giveBack makes a grant that was taken usable again if the call was not carried out.
func (ex *Exchange) giveBack(ctx context.Context) {
	g := ex.Approval.grant
	refused := ex.Sent == Answered && Refuses(ex.Event.UpstreamStatus)
	if g == nil || ex.Adopted != "" || ex.Sent != NotSent && !refused {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	if _, _, err := ex.Ports.Approvals.Swap(ctx, ex.Caller.Org, g.now, g.was); err != nil && ex.Event.Cause == nil {
		ex.Event.Cause = err // it is used up, and has to be asked for again
	}
}
