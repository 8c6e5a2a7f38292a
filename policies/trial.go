package policies

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/print"

	"github.com/tollgate-dev/tollgate/policies/load"
	"github.com/tollgate-dev/tollgate/policies/record"
	"github.com/tollgate-dev/tollgate/policies/sandbox"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// Draft is a change of an organisation's policies that is tried and never in force.
type Draft struct {
	// Entries take the place of those in force for the same policies, and stand beside all others.
	Entries []Entry
	// Rego is one file of the organisation's own, "" for none. It takes the place of the files of the same policy.
	Rego string
}

// DraftFile is the name of a draft's Rego in faults and coverage.
const DraftFile = "draft.rego"

// draft returns an organisation's policies with the draft, and the names of those that the draft is about.
func (e *Engine) draft(org string, d Draft) (*load.Section, []string, error) {
	now, known := e.now.Load().orgs[org]
	if !known {
		return nil, nil, fmt.Errorf("%w: %s", ErrUnknownOrg, org)
	}
	if now == nil {
		return nil, nil, fmt.Errorf("%w: %s", ErrPending, org)
	}
	e.mu.Lock()
	entries := slices.Clone(e.configs[org].Policies)
	e.mu.Unlock()
	var about []string
	for _, entry := range d.Entries {
		about = append(about, entry.Policy)
	}
	entries = append(slices.DeleteFunc(entries, func(have Entry) bool { return slices.Contains(about, have.Policy) }), d.Entries...)
	own := now.own
	if d.Rego != "" {
		with, policy, err := own.With(org, DraftFile, d.Rego)
		if err != nil {
			return nil, nil, err
		}
		own, about = with, append(about, policy)
	}
	return &load.Section{Org: org, Entries: entries, Rego: own, DocURL: e.deps.DocURL}, about, nil
}

// Draft returns an engine of one organisation that decides by the policies in force with a draft's changes, within limits of its own. It
// shares no room with this one. Faults of the draft are each a *section.Error.
func (e *Engine) Draft(ctx context.Context, org string, d Draft, limits Limits) (*Engine, error) {
	s, _, err := e.draft(org, d)
	if err != nil {
		return nil, err
	}
	next, err := NewEngine(limits, nil, Deps{DocURL: e.deps.DocURL, Now: e.deps.Now})
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	cfg := e.configs[org]
	e.mu.Unlock()
	cfg.Policies = s.Entries
	o, err := next.compile(ctx, org, cfg, s.Rego, nil)
	if err != nil {
		return nil, err
	}
	next.now.Store(&state{orgs: map[string]*orgState{org: o}})
	return next, nil
}

// Tried holds the verdicts of a draft's policies on one call.
type Tried struct {
	// Policies names those that the draft is about.
	Policies []string
	Decision Decision
	// Open lists what policies looked at that is hidden: they say nothing then.
	Open []Open
	// Prints are the lines that print has written, and where.
	Prints []string
	// Covered are the lines of the draft's Rego that were evaluated, Missed those that were not, both by number from 1.
	Covered, Missed []int
}

const (
	// trialTime bounds a trial, compiling included.
	trialTime = 2 * time.Second
	// trialMemory is how much larger the heap may become meanwhile.
	trialMemory = 128 << 20
	// maxPrints bounds the kept output of print, in bytes.
	maxPrints = 64 << 10
)

// Try asks the policies that a draft is about, and no others, of a recorded call. It ends within two seconds and within 128 MiB of memory;
// an evaluation that cannot be interrupted may go on for a while behind an error. Faults of the draft are each a *section.Error.
func (e *Engine) Try(ctx context.Context, org string, d Draft, call *record.Recorded) (*Tried, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, trialTime, ErrDeadline)
	defer cancel()
	ctx, stop := sandbox.WithinMemory(ctx, trialMemory)
	defer stop()
	s, about, err := e.draft(org, d)
	if err != nil {
		return nil, err
	}
	s.Prints = true
	type end struct {
		tried *Tried
		err   error
	}
	done := make(chan end, 1)
	halt := topdown.NewCancel()
	go func() {
		var x end
		x.err = sandbox.Run(func() (err error) {
			x.tried, err = try(ctx, s, about, call, halt)
			return err
		})
		done <- x
	}()
	select {
	case x := <-done:
		if _, fault := errors.AsType[*section.Error](x.err); x.err != nil && !fault && context.Cause(ctx) != nil {
			return nil, fmt.Errorf("%w: %w", ErrEvaluation, context.Cause(ctx))
		}
		return x.tried, x.err
	case <-ctx.Done():
		halt.Cancel()
		return nil, fmt.Errorf("%w: %w", ErrEvaluation, context.Cause(ctx))
	}
}

// try compiles a section and asks some of its policies.
func try(ctx context.Context, s *load.Section, about []string, call *record.Recorded, halt topdown.Cancel) (*Tried, error) {
	compiled, err := load.Compile(ctx, s)
	if err != nil {
		return nil, err
	}
	doc, err := call.Input.Document()
	if err != nil {
		return nil, err
	}
	var convert record.Converter
	input, err := convert.Term(doc, compiled.Reads)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	run, err := compiled.Begin(ctx, input, call.Input.Time)
	if err != nil {
		return nil, err
	}
	defer run.End(ctx)
	out, watch := &Tried{Policies: about, Decision: Decision{Revision: compiled.Revision}}, &openings{watch: record.NewWatch(call), open: map[openKey][]string{}}
	printed, covered := &prints{left: maxPrints}, cover.New()
	for i, c := range compiled.Calls {
		if !slices.Contains(about, c.Entry.Policy) {
			continue
		}
		var answer *ast.Term
		err := sandbox.RunDeep(1, func() (err error) {
			answer, err = one(ctx, watch.watch.Begin(run.Query(i, halt)).WithPrintHook(printed).WithQueryTracer(covered))
			return err
		})
		if !watch.end(c) {
			continue
		}
		if err == nil {
			err = out.Decision.take(c, answer)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: policy %s: %s: %w", ErrEvaluation, c.Entry.Policy, c.Rule, err)
		}
	}
	out.Decision.sort()
	out.Open, out.Prints = watch.list(), printed.lines
	if m := s.Rego.Module(DraftFile); m != nil {
		if f := covered.Report(map[string]*ast.Module{DraftFile: m}).Files[DraftFile]; f != nil {
			out.Covered, out.Missed = linesOf(f.Covered), linesOf(f.NotCovered)
		}
	}
	return out, nil
}

// linesOf lists the lines of ranges.
func linesOf(ranges []cover.Range) []int {
	var out []int
	for _, r := range ranges {
		for n := r.Start.Row; n <= r.End.Row; n++ {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

var errPrints = errors.New("more than 64 KiB are printed")

// prints keeps the lines that policies print.
type prints struct {
	lines []string
	left  int // in bytes
}

// Print implements print.Hook.
func (p *prints) Print(at print.Context, text string) error {
	var line bytes.Buffer
	if at.Location != nil {
		fmt.Fprintf(&line, "%s:%d: ", cmp.Or(at.Location.File, DraftFile), at.Location.Row)
	}
	line.WriteString(strings.ToValidUTF8(text[:min(len(text), maxPrints)], ""))
	if p.left -= line.Len(); p.left <= 0 {
		return errPrints // print of several values that are several each could go on for ever
	}
	p.lines = append(p.lines, line.String())
	return nil
}
