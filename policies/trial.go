package policies

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/print"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
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

// with returns the policies with a draft, and the names of the policies that the draft is about.
func (s *Source) with(d Draft) (*compiler.Options, []string, error) {
	var about []string
	for _, entry := range d.Entries {
		about = append(about, entry.Policy)
	}
	entries := append(slices.DeleteFunc(slices.Clone(s.Entries), func(have Entry) bool { return slices.Contains(about, have.Policy) }), d.Entries...)
	var own compiler.OrgRego
	if len(s.Rego) > 0 || len(s.Data) > 0 {
		var err error
		if own, err = compiler.Parse(s.Org, s.Digest, s.Rego, s.Data); err != nil {
			return nil, nil, err
		}
	}
	if d.Rego != "" {
		with, policy, err := own.With(s.Org, DraftFile, d.Rego)
		if err != nil {
			return nil, nil, err
		}
		own, about = with, append(about, policy)
	}
	return &compiler.Options{Org: s.Org, Entries: entries, Rego: own, DocURL: s.DocURL}, about, nil
}

// Draft returns an engine of the organisation that decides by its policies with a draft's changes. Faults of the draft are each a
// *section.Error.
func (s *Source) Draft(ctx context.Context, d Draft, limits Limits) (*Engine, error) {
	with, _, err := s.with(d)
	if err != nil {
		return nil, err
	}
	next, err := NewEngine(limits, nil, Deps{DocURL: s.DocURL})
	if err != nil {
		return nil, err
	}
	o, err := next.compile(ctx, s.Org, Config{Policies: with.Entries, Exceptions: s.Exceptions}, with.Rego, nil)
	if err != nil {
		return nil, err
	}
	next.now.Store(&state{orgs: map[string]*orgState{s.Org: o}})
	return next, nil
}

// TrialResult holds the verdicts of a draft's policies on one call.
type TrialResult struct {
	// Policies names those that the draft is about.
	Policies []string
	Decision Decision
	// Undetermined lists what policies looked at that is hidden: they say nothing then.
	Undetermined []Undetermined
	// Output are the lines that print has written, and where.
	Output []string
	// Covered are the lines of the draft's Rego that were evaluated, Missed those that were not, both by number from 1.
	Covered, Missed []int
}

// maxPrints bounds the kept output of print, in bytes.
const maxPrints = 64 << 10

// Try asks the policies that a draft is about, and no others, about a recorded call. It compiles and evaluates in this process and may
// never end: run it in a child process. Faults of the draft are each a *section.Error.
func (s *Source) Try(ctx context.Context, d Draft, call *policyinput.Recorded) (tried *TrialResult, err error) {
	with, about, err := s.with(d)
	if err != nil {
		return nil, err
	}
	with.Prints = true
	err = regosandbox.Run(func() (err error) {
		tried, err = try(ctx, with, about, call, topdown.NewCancel())
		return err
	})
	return tried, err
}

// try compiles a section and asks some of its policies.
func try(ctx context.Context, s *compiler.Options, about []string, call *policyinput.Recorded, halt topdown.Cancel) (*TrialResult, error) {
	compiled, err := compiler.Compile(ctx, s)
	if err != nil {
		return nil, err
	}
	doc, err := call.Input.Document()
	if err != nil {
		return nil, err
	}
	var convert policyinput.Converter
	input, err := convert.Term(doc, compiled.Reads)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, err)
	}
	run, err := compiled.Begin(ctx, input, call.Input.Time)
	if err != nil {
		return nil, err
	}
	defer run.End(ctx)
	out, watch := &TrialResult{Policies: about, Decision: Decision{Revision: compiled.Revision}}, &undetermined{watch: policyinput.NewAccessTracer(call), open: map[undeterminedKey][]string{}}
	printed, covered := &prints{left: maxPrints}, cover.New()
	for i, c := range compiled.Calls {
		if !slices.Contains(about, c.Entry.Policy) {
			continue
		}
		var answer *ast.Term
		err := regosandbox.RunDeep(1, func() (err error) {
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
	out.Undetermined, out.Output = watch.list(), printed.lines
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
