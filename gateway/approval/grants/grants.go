package grants

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
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Grants allows refused calls that operators have approved. It implements [filter.Approvals].
type Grants struct {
	Store Store
}

// Store stores approval requests and grants, each under the digest of its call.
type Store interface {
	Get(ctx context.Context, org, question string) (approval.Entry, error)
	Swap(ctx context.Context, org string, old approval.Entry, next *approval.Record) (approval.Entry, bool, error)
	// ApprovalRequested notifies operators of a new approval request.
	ApprovalRequested(ctx context.Context, org string, r *approval.Record)
}

// maxShown limits the size of the body in an approval request, in bytes.
const maxShown = 4 << 10

// Approve uses a grant that covers the violations, and returns the violations that the grant overrides. Without a grant it creates an
// approval request and adds the ID of the request to p. If the store is unavailable, p is unchanged.
func (f *Grants) Approve(
	ctx context.Context, ex *filter.Exchange, violations []policies.Violation, p *problem.Problem,
) []policies.Excepted {
	refusals := make([]approval.Refusal, len(violations))
	for i, v := range violations {
		refusals[i] = approval.Refusal{By: v.Policy, Message: v.Message}
	}
	r := f.take(ctx, ex, refusals, p)
	if r == nil {
		return nil
	}
	lifted := make([]policies.Excepted, len(violations))
	for i, v := range violations {
		lifted[i] = policies.Excepted{Violation: v, Exception: r.ID, Until: r.Until, Reason: r.Answer.Reason, GrantedBy: r.Answer.By}
	}
	return lifted
}

// take returns the grant that covers the refusals. If no grant covers them, it creates an approval request and returns nil.
func (f *Grants) take(ctx context.Context, ex *filter.Exchange, refusals []approval.Refusal, p *problem.Problem) *approval.Record {
	if ex.Idempotency != nil && ex.Ports.Intents.MayRepeat(ctx, ex) {
		return nil // the retry of an allowed call is answered from its idempotency record
	}
	question, err := callDigest(ex)
	if err != nil {
		ex.Event.Cause = err
		return nil
	}
	e, err := f.Store.Get(ctx, ex.Caller.Org, question)
	for swapped := false; err == nil && !swapped; {
		r := e.Record
		if r != nil && r.Covers(refusals) {
			switch {
			case r.State == approval.Pending || r.State == approval.Denied:
				addAdvice(ex, p, r)
				return nil
			case r.State == approval.Used && ex.Approval.Grant != nil && ex.Approval.Grant.After.Record.Claim == r.Claim && within(ex, r):
				return ex.Approval.Grant.Before
			case r.State == approval.Granted && within(ex, r):
				next := *r
				next.State, next.UsedBy, next.Claim = approval.Used, ex.DecisionID, ulid.Make().String()
				next.Until = e.Now.Add(approval.RequestTTL)
				if e, swapped, err = f.Store.Swap(ctx, ex.Caller.Org, e, &next); swapped {
					ex.Approval.Grant = &filter.Grant{Before: r, After: e}
					return r
				}
				continue
			}
		}
		next := newRequest(ex, e, refusals)
		if r != nil && r.State == approval.Used && ex.Approval.Grant == nil { // keep showing it, under its own ID
			if _, _, err = f.Store.Swap(ctx, ex.Caller.Org, approval.Entry{ID: r.ID}, r); err != nil {
				break
			}
		}
		if e, swapped, err = f.Store.Swap(ctx, ex.Caller.Org, e, next); swapped {
			ex.Approval.Grant = nil // request approval together with the grant's own denials
			addAdvice(ex, p, e.Record)
			if e.Record.ID != "" {
				f.Store.ApprovalRequested(ctx, ex.Caller.Org, e.Record)
			}
		}
	}
	if errors.Is(err, approval.ErrFull) {
		p.Detail += "; an operator can approve this call, but too many approval requests are pending"
	} else if err != nil {
		ex.Event.Cause = err
	}
	return nil
}

// newRequest returns the approval request for the given refusals and those already requested.
func newRequest(ex *filter.Exchange, e approval.Entry, refusals []approval.Refusal) *approval.Record {
	op := ex.Operation
	path, _ := ex.PathAndQuery()
	next := &approval.Record{
		ID: "ap-" + ulid.Make().String(), State: approval.Pending, Key: ex.Caller.Key, Team: ex.Caller.Team, Operation: op.ID,
		Call: op.Method + " " + path, Summary: describeCall(ex), USD: highestCost(ex), Per: unit(ex), Decision: ex.DecisionID,
		Refusals: slices.Clone(refusals), Asked: e.Now, Until: e.Now.Add(approval.RequestTTL),
	}
	if r := e.Record; r != nil && (r.State != approval.Used || ex.Approval.Grant != nil && ex.Approval.Grant.After.Record.Claim == r.Claim) {
		for _, was := range r.Refusals {
			if !next.Covers([]approval.Refusal{was}) {
				next.Refusals = append(next.Refusals, was)
			}
		}
	}
	if named := ex.DisplayBody(); named != nil && len(ex.In.Body) <= maxShown {
		if text, err := strictjson.Append(nil, decisionlog.Masked(named)); err == nil && len(text) <= maxShown {
			next.Body = text
		}
	}
	return next
}

// callDigest returns the digest of the caller and the call. The digest covers secrets, which themselves are not stored.
func callDigest(ex *filter.Exchange) (string, error) {
	if ex.Approval.Fingerprint != "" {
		return ex.Approval.Fingerprint, nil
	}
	in := ex.Evaluation.Input
	h := sha256.New()
	path, query := ex.PathAndQuery()
	_, _ = io.WriteString(h, filter.Digest(ex.Caller.Key, ex.Caller.Team, ex.Operation.ID, path, query))
	docs := []any{in.Request.Body}
	switch row, _ := operation.Lookup(ex.Operation.ID); row.EffectiveVerb(in.Request.Body) { //nolint:exhaustive // the body has all of the others
	case operation.VerbCreate:
		docs = append(docs, in.Resource.After) // with its template as of now
	case operation.VerbExec:
		docs = append(docs, ex.Body.Doc) // policies do not see it
	}
	if len(in.Request.Unknown) > 0 { // without, the digest is the same as in version 0.9.0
		docs = append(docs, in.Request.Unknown)
	}
	for _, doc := range docs {
		if err := strictjson.Write(h, doc); err != nil {
			return "", fmt.Errorf("digest of the call: %w", err)
		}
		_, _ = h.Write([]byte{'\n'})
	}
	ex.Approval.Fingerprint = hex.EncodeToString(h.Sum(nil))
	return ex.Approval.Fingerprint, nil
}

// describeCall describes the machines of the call, or the parts of its price.
func describeCall(ex *filter.Exchange) string {
	cost := ex.Evaluation.Input.Cost
	after, _ := ex.Evaluation.Input.Resource.After.(map[string]any)
	row, _ := operation.Lookup(ex.Operation.ID)
	if machine, _ := ledger.Machine(row.Kind, after); machine != "" && cost.GPUs > 0 {
		return fmt.Sprintf("%d x %s", cost.GPUs, machine)
	}
	return cost.Basis
}

// unit returns the unit of the call's price.
func unit(ex *filter.Exchange) approval.Unit {
	if row, _ := operation.Lookup(ex.Operation.ID); row.Kind == operation.KindJob {
		return approval.PerRun
	}
	return approval.PerHour
}

// highestCost returns the highest cost of the call in USD per hour or run, or "" if unknown.
func highestCost(ex *filter.Exchange) string {
	cost := ex.Evaluation.Input.Cost
	if unit(ex) == approval.PerRun {
		if r := ex.Cost.Reservation; r != nil {
			cost.Run = max(cost.Run, catalog.Money(r.After[ledger.Cost]))
		}
		if cost.Run == 0 {
			return ""
		}
		return cost.Run.String()
	}
	if !cost.Known {
		return ""
	}
	if r := ex.Cost.Reservation; r != nil && !r.Free {
		return max(cost.Hourly, catalog.Money(r.After[ledger.Burn])).String()
	}
	return cost.Hourly.String()
}

// within reports whether the call costs no more than was granted.
func within(ex *filter.Exchange, r *approval.Record) bool {
	if r.Answer == nil {
		return false
	}
	costs, most := highestCost(ex), r.Answer.MaxUSD
	if costs == "" || most == "" {
		return costs == most
	}
	price, err1 := catalog.ParseMoney(costs)
	limit, err2 := catalog.ParseMoney(most)
	return errors.Join(err1, err2) == nil && price <= limit
}

// addAdvice adds to a refusal how the call can be approved, or that approval was denied.
func addAdvice(ex *filter.Exchange, p *problem.Problem, r *approval.Record) {
	switch {
	case r.State == approval.Denied:
		p.Detail += fmt.Sprintf("; approval request %s was denied by %s", r.ID, r.Answer.By)
		if r.Answer.Reason != "" {
			p.Detail += ": " + r.Answer.Reason
		}
	case r.ID == "": // a dry run, which creates no request
		p.Detail += "; an operator can approve this call: make the call to request approval"
		return
	default:
		p.Detail += approval.Advice + fmt.Sprintf("ask an operator to run 'tollgate approvals grant %s %s', then repeat the call",
			ex.Caller.Org, r.ID)
	}
	p.Approval = &problem.Approval{ID: r.ID, State: string(r.State), Until: r.Until}
}

// GiveBack makes a used grant valid again if the call was not carried out.
func (f *Grants) GiveBack(ctx context.Context, ex *filter.Exchange) {
	g := ex.Approval.Grant
	refused := ex.Sent == filter.Answered && filter.IsRefusalStatus(ex.Event.UpstreamStatus)
	if g == nil || ex.Adopted != "" || ex.Sent != filter.NotSent && !refused {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), filter.SettleTimeout)
	defer cancel()
	_, _, err := f.Store.Swap(ctx, ex.Caller.Org, g.After, g.Before)
	ex.RecordFailure(err) // the grant stays used; a new request is necessary
}
