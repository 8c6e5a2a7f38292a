package policies

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"github.com/tollgate-dev/tollgate/policies/nextstate"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// ratchet turns denials into warnings where an update violates a policy no more than
// the resource does before it, for the policies whose entries say so. The state before
// is judged as an update that changes nothing. Denials stand when that cannot be
// judged.
func (e *Engine) ratchet(ctx context.Context, o *orgState, in *Input, d *Decision) {
	ratcheting := o.ratcheting(d, in)
	if len(ratcheting) == 0 {
		return
	}
	doc, err := unchanged(in)
	if err != nil {
		return
	}
	before, err := e.verdict(ctx, o, doc, in.Time)
	if err != nil {
		return
	}
	for _, policy := range ratcheting {
		of := func(v Violation) bool { return v.Policy == policy }
		if !noWorseThan(filtered(d.Deny, of), filtered(before.Deny, of)) {
			continue
		}
		warn := slices.Clone(d.Warn) // it may be a remembered one
		for _, v := range filtered(d.Deny, of) {
			v.Message = "let pass, since the resource was no better before: " + v.Message
			warn = append(warn, v)
		}
		d.Warn = warn
		d.Deny = filtered(d.Deny, func(v Violation) bool { return !of(v) })
	}
}

// ratcheting lists the policies that deny an update and ratchet for its caller: by
// every entry in force that concerns it.
func (o *orgState) ratcheting(d *Decision, in *Input) []string {
	row, _ := operation.Lookup(in.Request.Operation)
	if row.Verb != operation.VerbUpdate || in.Resource.Current == nil {
		return nil
	}
	var out []string
	for _, v := range d.Deny {
		firm := false
		for _, c := range o.Calls {
			firm = firm || c.Entry.Policy == v.Policy && !c.Entry.Ratchet &&
				c.Entry.Mode.OrDefault() == ModeEnforce && c.Entry.AppliesTo(in.Caller.Team, in.Caller.Roles)
		}
		if !firm && !slices.Contains(out, v.Policy) {
			out = append(out, v.Policy)
		}
	}
	return out
}

// unchanged is an update as if it changed nothing. A price that is not known is none
// to compare with, and counts as nothing.
func unchanged(in *Input) (*policyinput.Document, error) {
	current, _ := in.Resource.Current.(map[string]any)
	body := map[string]any{}
	after, err := nextstate.Update(in.Request.Operation, current, body, nil)
	if err != nil {
		return nil, err
	}
	out := *in
	out.Request.Body, out.Resource.After, out.Resource.Template = body, after, nil
	if out.Cost = in.Catalog.Price(in.Request.Operation, operation.VerbUpdate, after); !out.Cost.Known {
		out.Cost = Cost{Known: true}
	}
	return out.Document()
}

// noWorseThan reports whether each violation after has one before of its own that it is no
// worse than.
func noWorseThan(after, before []Violation) bool {
	worstFirst := func(a, b Violation) int { return cmp.Compare(b.Excess, a.Excess) }
	slices.SortStableFunc(after, worstFirst)
	slices.SortStableFunc(before, worstFirst)
	for _, v := range after {
		i := slices.IndexFunc(before, v.noWorse)
		if i < 0 {
			return false
		}
		before = slices.Delete(before, i, i+1)
	}
	return true
}

// noWorse reports whether a violation is at the place of another, regardless of
// positions in lists, and says the same: of two with an excess, but for numbers and
// text in parentheses, with no larger excess.
func (v Violation) noWorse(other Violation) bool {
	place := func(pointer string) string { return position.ReplaceAllString(pointer, "/*") }
	if place(v.Pointer) != place(other.Pointer) {
		return false
	}
	if v.Excess == 0 || other.Excess == 0 {
		return v.Message == other.Message
	}
	kind := func(message string) string { return particular.ReplaceAllString(message, "") }
	return v.Excess <= other.Excess && kind(v.Message) == kind(other.Message)
}

var (
	// position is a position in a list, in a pointer.
	position = regexp.MustCompile(`/[0-9]+`)
	// particular matches the parts that differ in the messages of one kind of violation.
	particular = regexp.MustCompile(`[0-9.]+|\(.*`)
)

// filtered returns a new list of those that satisfy a condition.
func filtered(list []Violation, ok func(Violation) bool) []Violation {
	return slices.DeleteFunc(slices.Clone(list), func(v Violation) bool { return !ok(v) })
}
