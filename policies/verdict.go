package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// verdict returns the decision before exceptions. Results for equal inputs are cached, both for all policies together and for each policy.
// Therefore only the policies that read a changed value are evaluated again.
func (e *Engine) verdict(ctx context.Context, o *orgState, doc *policyinput.Document, now time.Time) (*Decision, error) {
	key, kept := o.memory.Key(doc, o.Reads, -1)
	if kept {
		if d, known := o.memory.Get(key); known {
			return d, nil
		}
	}
	q := o.newEvaluation(doc, now)
	q.recall()
	q.silent()
	d, err := e.evaluate(ctx, q)
	if err != nil {
		return nil, err
	}
	if kept {
		o.memory.Add(key, d)
	}
	q.remember()
	return d, nil
}

// evaluation is one evaluation of an organisation's policies for a call.
type evaluation struct {
	*orgState

	doc     *policyinput.Document
	now     time.Time
	input   *ast.Term     // the part of the document that policies read; nil before conversion
	w       *undetermined // traces reads of hidden places; nil disables tracing
	results []callResult  // one per policy call
}

func (o *orgState) newEvaluation(doc *policyinput.Document, now time.Time) *evaluation {
	return &evaluation{orgState: o, doc: doc, now: now, results: make([]callResult, len(o.Calls))}
}

// callResult is the decision of one policy call.
type callResult struct {
	decision *Decision // nil before the call is evaluated
	key      policyinput.Key
	kept     bool // whether key is set
}

// recall looks up the cached decision of each call.
func (q *evaluation) recall() {
	for i, c := range q.Calls {
		s := &q.results[i]
		if s.key, s.kept = q.memory.Key(q.doc, c.Reads, i); !s.kept {
			continue
		}
		if d, known := q.memory.Get(s.key); known {
			s.decision, s.kept = d, false
		}
	}
}

// remember caches the new decisions.
func (q *evaluation) remember() {
	for _, s := range q.results {
		if s.kept {
			q.memory.Add(s.key, s.decision)
		}
	}
}

// answer merges the decisions of all calls.
func (q *evaluation) answer() *Decision {
	d := &Decision{Revision: q.revision}
	for _, s := range q.results {
		d.Deny = append(d.Deny, s.decision.Deny...)
		d.Warn = append(d.Warn, s.decision.Warn...)
		d.Shadow = append(d.Shadow, s.decision.Shadow...)
		d.Mutate = append(d.Mutate, s.decision.Mutate...)
	}
	d.sort()
	return d
}

// evaluate runs the policies on a separate goroutine, so that a built-in function that ignores cancellation cannot delay the caller
// past its deadline. An evaluation that outlives its deadline keeps its place until it ends.
func (e *Engine) evaluate(ctx context.Context, q *evaluation) (*Decision, error) {
	if !slices.ContainsFunc(q.results, callResult.open) {
		return q.answer(), nil
	}
	deadline := time.NewTimer(e.limits.Deadline)
	defer deadline.Stop()
	// Wait for the organisation's share first, so that waiters hold no place.
	if err := e.enter(ctx, q.share, deadline.C); err != nil {
		return nil, err
	}
	if err := e.enter(ctx, e.places, deadline.C); err != nil {
		release(q.share)
		return nil, err
	}
	cancel := topdown.NewCancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			release(e.places)
			release(q.share)
		}()
		done <- q.decide(cancel)
	}()
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return q.answer(), nil
	case <-deadline.C:
		cancel.Cancel()
		return nil, fmt.Errorf("%w: %s", ErrDeadline, e.limits.Deadline)
	case <-ctx.Done():
		cancel.Cancel()
		return nil, fmt.Errorf("%w: %w", ErrEvaluation, context.Cause(ctx))
	}
}

// decide evaluates the calls and returns a panic as an error.
func (q *evaluation) decide(cancel topdown.Cancel) error {
	err := regosandbox.Run(q.convert)
	if err == nil {
		err = regosandbox.RunDeep(len(q.Calls), func() error { return q.run(q.input, cancel) })
	}
	if err != nil && !errors.Is(err, ErrInput) {
		err = fmt.Errorf("%w: %w", ErrEvaluation, err)
	}
	return err
}

// convert converts the document to an OPA term, once.
func (q *evaluation) convert() (err error) {
	if q.input != nil {
		return nil
	}
	if q.input, err = q.converter.Term(q.doc, q.Reads); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

// noResult is the decision of a policy call without results.
var noResult = new(Decision)

// silent finds policy calls without results by running the precompiled program, which is cheaper than an evaluation. Its work is
// bounded, so it runs on the caller's goroutine. Calls it cannot decide are left to the evaluation.
func (q *evaluation) silent() {
	if !q.HasProgram() || !slices.ContainsFunc(q.results, callResult.open) {
		return
	}
	_ = regosandbox.Run(func() error {
		if err := q.convert(); err != nil {
			return err
		}
		q.EachSilent(q.input, func(i int) bool { return q.results[i].open() }, func(i int) { q.results[i].decision = noResult })
		return nil
	})
}

// open reports whether the call has not been evaluated.
func (s callResult) open() bool { return s.decision == nil }

// run evaluates the calls that have no decision yet, in order.
//
// If reads of hidden places are traced, a call that read one has no result, not even an error.
func (q *evaluation) run(input *ast.Term, cancel topdown.Cancel) error {
	// Do not use the caller's context: the store is in memory, and cancel ends the evaluation.
	ctx := context.Background() //nolint:forbidigo // see above
	evaluation, err := q.Begin(ctx, input, q.now)
	if err != nil {
		return err
	}
	defer evaluation.End(ctx)
	for i, c := range q.Calls {
		if q.results[i].decision != nil {
			continue
		}
		query := evaluation.Query(i, cancel)
		if q.w != nil {
			query = q.w.watch.Begin(query)
		}
		answer, err := one(ctx, query)
		d := new(Decision)
		q.results[i].decision = d
		if q.w != nil && !q.w.end(c) && !cancel.Cancelled() {
			continue
		}
		if err == nil {
			err = d.add(c, answer)
		}
		if err != nil {
			return fmt.Errorf("policy %s: %s: %w", c.Entry.Policy, c.Rule, err)
		}
	}
	return nil
}

// one returns the single result of a query.
func one(ctx context.Context, q *topdown.Query) (*ast.Term, error) {
	var answer *ast.Term
	answers := 0
	err := q.Iter(ctx, func(r topdown.QueryResult) error {
		answer = r[compiler.Answer]
		answers++
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case answers != 1 || answer == nil:
		return nil, errors.New("undefined")
	}
	return answer, nil
}
