package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/nextstate"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// Options selects the calls to replay.
type Options struct {
	// Org selects the calls of one organisation. Default: all organisations, each with its own policies.
	Org string
	// As is the organisation whose policies are evaluated for every call. Default: the organisation of the call.
	As string
	// Examples is the number of calls of each kind that are reported in full; negative means none. Default: 3.
	Examples int
}

// ErrSeveralOrgs means that As is set and the log contains calls of several organisations, so that Org is required.
var ErrSeveralOrgs = errors.New("the log contains calls of several organisations: select an organisation")

// maxFaults is the number of damaged events that are reported individually.
const maxFaults = 5

// maxRounds limits how often policies may change a body, as in the gateway.
const maxRounds = 3

// Run replays a log. It returns an error if the log cannot be read or if ctx ends. Damaged events are counted in the report.
func Run(ctx context.Context, log io.Reader, engine *policies.Engine, opts Options) (*Report, error) {
	p := &player{engine: engine, opts: opts, report: newReport()}
	p.opts.Examples = cmp.Or(opts.Examples, 3)
	err := each(log, func(at string, raw []byte) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return p.play(ctx, at, raw)
	})
	if err != nil {
		return nil, err
	}
	p.report.finish()
	return p.report, nil
}

type player struct {
	engine *policies.Engine
	opts   Options
	report *Report
	only   string // the organisation of the calls, if As is set
}

// play replays one event.
func (p *player) play(ctx context.Context, at string, raw []byte) error {
	r := p.report
	r.Read++
	e, err := parse(raw)
	if e != nil && p.opts.Org != "" && e.Org != p.opts.Org {
		r.Skipped++
		return nil
	}
	switch {
	case errors.Is(err, errOther):
		r.Other++
		return nil
	case err != nil && e != nil && errors.Is(err, policies.ErrInput):
		r.add(Undetermined, nil, e.example(nil, nil, []string{err.Error()}), p.opts.Examples)
		return nil
	case err != nil:
		r.Unreadable++
		if len(r.Faults) < maxFaults {
			r.Faults = append(r.Faults, at+": "+err.Error())
		}
		return nil
	}
	org := e.Org
	if p.opts.As != "" {
		if p.only != "" && p.only != e.Org {
			return fmt.Errorf("%w: %s, %s", ErrSeveralOrgs, p.only, e.Org)
		}
		org, p.only = p.opts.As, e.Org
	}
	now, err := p.decide(ctx, org, e)
	if err != nil {
		return err
	}
	p.compare(e, now)
	return nil
}

// outcome is the verdict of the new policies.
type outcome struct {
	verdict
	open    []policies.Undetermined
	missing []string // why the verdict is missing
}

// decide decides a call, and decides again if policies change its body.
func (p *player) decide(ctx context.Context, org string, e *event) (outcome, error) {
	rec := e.recorded
	var all []policies.Undetermined
	for range maxRounds + 1 {
		d, open, err := p.engine.DecideRecorded(ctx, org, rec)
		if cause := context.Cause(ctx); cause != nil {
			return outcome{}, cause
		}
		all = append(all, open...)
		switch {
		case errors.Is(err, policies.ErrUnknownOrg), errors.Is(err, policies.ErrBundlePending), errors.Is(err, policies.ErrDeadline):
			return outcome{missing: []string{err.Error()}}, nil
		case errors.Is(err, policies.ErrInput) && len(rec.Hidden) > 0:
			return outcome{missing: []string{err.Error()}}, nil
		case err != nil:
			return outcome{verdict: verdict{failed: "no decision: " + err.Error()}}, nil //nolint:nilerr // the error is what is reported
		}
		p.report.Revisions[org] = d.Revision
		// As in the gateway, denials count once the body no longer changes.
		if len(d.Mutate) == 0 {
			return outcome{verdict: verdict{deny: reasons(d.Deny), warn: reasons(d.Warn), shadow: reasons(d.Shadow)}, open: all}, nil
		}
		if rec, err = changed(rec, d.Mutate); err != nil {
			return outcome{missing: []string{"the body as changed by policies: " + err.Error()}}, nil //nolint:nilerr // as above
		}
	}
	return outcome{verdict: verdict{failed: fmt.Sprintf("no decision: policies were still changing the body after %d rounds", maxRounds)}}, nil
}

// changed returns the call with its body changed and its resulting state recomputed. Its price is then unknown.
func changed(rec *policyinput.Recorded, changes []policies.Mutation) (*policyinput.Recorded, error) {
	in := *rec.Input
	body, err := policies.Apply(in.Request.Body, changes)
	if err != nil {
		return nil, err
	}
	in.Request.Body = body
	out := &policyinput.Recorded{Input: &in, Hidden: slices.Clone(rec.Hidden)}
	row, _ := operation.Lookup(in.Request.Operation)
	if row.Price != operation.PriceFree {
		out.Hidden = append(out.Hidden, "/cost")
	}
	if !row.Verb.HasResultState() {
		return out, nil
	}
	object, _ := body.(map[string]any)
	current, _ := in.Resource.Current.(map[string]any)
	var template map[string]any
	if in.Resource.Template != nil {
		template, _ = in.Resource.Template.Record.(map[string]any)
	}
	switch row.Verb { //nolint:exhaustive // nothing else has a body that ends up in the state after
	case operation.VerbCreate:
		in.Resource.After, err = nextstate.Create(in.Request.Operation, object, template)
	case operation.VerbUpdate:
		in.Resource.After, err = nextstate.Update(in.Request.Operation, current, object, template)
	}
	return out, err
}

func reasons(list []policies.Violation) []Reason {
	var out []Reason
	for _, v := range list {
		out = append(out, Reason{v.Policy, v.Message, v.Pointer})
	}
	return out
}
