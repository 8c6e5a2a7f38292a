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

// ratchet turns violations of an update into warnings if the resource already violated the policy at least as much before it. It
// applies to policies whose entry sets ratchet. The previous state is evaluated as an update that changes nothing; if that
// evaluation fails, the violations stay.
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
		warn := slices.Clone(d.Warn) // the slice may be cached
		for _, v := range filtered(d.Deny, of) {
			v.Message = "allowed because the resource already violated this policy: " + v.Message
			warn = append(warn, v)
		}
		d.Warn = warn
		d.Deny = filtered(d.Deny, func(v Violation) bool { return !of(v) })
	}
}

// ratcheting returns the policies that deny an update and for which every applicable entry sets ratchet.
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

// unchanged returns the input of an update that changes nothing. An unknown price is treated as 0.
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

// noWorseThan reports whether each violation in after can be matched with a distinct violation in before that is at least as bad.
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

// noWorse reports whether v is at the same place as other, ignoring list positions, and is no worse. If both have an excess, the excess of
// v must not be larger, and the messages must match except for numbers and text in parentheses. Otherwise the messages must be equal.
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
	// position matches a list index in a pointer.
	position = regexp.MustCompile(`/[0-9]+`)
	// particular matches the variable parts of a message.
	particular = regexp.MustCompile(`[0-9.]+|\(.*`)
)

// filtered returns a new slice with the violations for which ok returns true.
func filtered(list []Violation, ok func(Violation) bool) []Violation {
	return slices.DeleteFunc(slices.Clone(list), func(v Violation) bool { return !ok(v) })
}
