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

// Draft is a proposed change to an organisation's policies. It is evaluated and never put in force.
type Draft struct {
	// Entries replace the entries in force for the same policies. All other entries stay.
	Entries []Entry
	// Rego is one file of the organisation's own Rego, or "" for none. It replaces the files of the same policy.
	Rego string
}

// DraftFile is the file name of a draft's Rego in errors and coverage. It distinguishes faults of the draft from faults of existing files.
const DraftFile = "draft.rego"

// with returns the compiler options with the draft applied, and the names of the policies the draft changes.
func (s *Source) with(d Draft) (*compiler.Options, []string, error) {
	var about []string
	for _, entry := range d.Entries {
		about = append(about, entry.Policy)
	}
	entries := append(slices.DeleteFunc(slices.Clone(s.Entries), func(have Entry) bool { return slices.Contains(about, have.Policy) }),
		d.Entries...)
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
	return &compiler.Options{Org: s.Org, Entries: entries, Rego: own}, about, nil
}

// Draft returns a new engine with the organisation's policies as changed by the draft. It does not change the policies in force. It returns
// each fault of the draft as a *policyconfig.Error.
func (s *Source) Draft(ctx context.Context, d Draft, limits Limits) (*Engine, error) {
	with, _, err := s.with(d)
	if err != nil {
		return nil, err
	}
	next, err := NewEngine(limits, nil, Deps{})
	if err != nil {
		return nil, err
	}
	o, err := next.compile(ctx, s.Org, Config{Policies: with.Entries, Exceptions: s.Exceptions}, with.Rego, nil)
	if err != nil {
		return nil, err
	}
	next.states.Store(&map[string]*orgState{s.Org: o})
	return next, nil
}

// TrialResult holds the verdicts of a draft's policies on one call.
type TrialResult struct {
	// Policies names the policies the draft changes.
	Policies []string
	Decision Decision
	// Undetermined lists policies that read hidden parts of the input and therefore have no verdict.
	Undetermined []Undetermined
	// Output holds the lines written by print, with their positions.
	Output []string
	// Covered and Missed are the line numbers of the draft's Rego that were and were not evaluated, starting at 1.
	Covered, Missed []int
}

// maxPrints limits the stored output of print, in bytes.
const maxPrints = 64 << 10

// Try evaluates only the policies that a draft changes, for a recorded call. It returns each fault of the draft as a *policyconfig.Error.
// The evaluation runs in this process and may not terminate: call Try in a child process.
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

// try compiles the options and evaluates the policies named in about.
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
	out, watch := &TrialResult{Policies: about, Decision: Decision{Revision: compiled.Revision}},
		&undetermined{watch: policyinput.NewAccessTracer(call), open: map[undeterminedKey][]string{}}
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
			err = out.Decision.add(c, answer)
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

// linesOf returns the line numbers in ranges.
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

var errPrints = errors.New("print output exceeds 64 KiB")

// prints stores the lines that policies print.
type prints struct {
	lines []string
	left  int // remaining bytes
}

// Print implements print.Hook.
func (p *prints) Print(at print.Context, text string) error {
	var line bytes.Buffer
	if at.Location != nil {
		fmt.Fprintf(&line, "%s:%d: ", cmp.Or(at.Location.File, DraftFile), at.Location.Row)
	}
	line.WriteString(strings.ToValidUTF8(text[:min(len(text), maxPrints)], ""))
	if p.left -= line.Len(); p.left <= 0 {
		return errPrints // print produces the cross product of its arguments' values, which may be huge
	}
	p.lines = append(p.lines, line.String())
	return nil
}
