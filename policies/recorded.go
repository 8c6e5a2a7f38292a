package policies

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/policies/compiler"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// Undetermined is a policy without a verdict: it read a part of the input that the decision log hides, so its result may depend on
// the hidden value.
type Undetermined struct {
	// Policy is the name of the policy.
	Policy string
	// Mode is the mode of its entry.
	Mode Mode
	// Hidden lists the hidden places it read, in the form of policyinput.Recorded.Hidden.
	Hidden []string
}

// DecideRecorded evaluates the policies for a call read from a decision log. The decision contains the verdicts of the policies that read
// no hidden value. All other policies are returned as undetermined, regardless of their result.
//
// The evaluation is traced, and every expression that was evaluated is compared with the hidden places. A reference to an object counts as
// reading everything in it. A policy may therefore be reported as undetermined although its result does not depend on a hidden value, but
// never the reverse.
func (e *Engine) DecideRecorded(ctx context.Context, org string, r *policyinput.Recorded) (Decision, []Undetermined, error) {
	o, err := e.state(org)
	if err != nil {
		return Decision{}, nil, err
	}
	in := r.Input
	doc, err := in.Document()
	if err != nil {
		return Decision{}, nil, err
	}
	w := &undetermined{watch: policyinput.NewAccessTracer(r), open: map[undeterminedKey][]string{}}
	q := o.newEvaluation(doc, in.Time)
	q.w = w
	verdict, err := e.evaluate(ctx, q)
	if err != nil {
		return Decision{}, nil, err
	}
	d := *verdict
	w.exceptions(&d, o.exceptions, in)
	d.except(o.exceptions, in)
	w.ratchet(&d, o, in)
	w.mutations(&d)
	if err := d.combineMutations(in.Request.Body, e.limits.MaxMutations); err != nil {
		return Decision{}, nil, err
	}
	return d, w.list(), nil
}

// undetermined collects the undetermined policies of one decision.
type undetermined struct {
	watch *policyinput.AccessTracer
	open  map[undeterminedKey][]string // the hidden places that were read
}

// undeterminedKey identifies an undetermined policy.
type undeterminedKey struct {
	policy string
	mode   Mode
}

func (o *undetermined) add(policy string, mode Mode, touched []string) {
	if len(touched) > 0 {
		k := undeterminedKey{policy, mode}
		o.open[k] = append(o.open[k], touched...)
	}
}

// end reports whether the traced call read nothing hidden, and records it as undetermined otherwise.
func (o *undetermined) end(c compiler.Call) bool {
	touched := o.watch.HiddenReads()
	o.add(c.Entry.Policy, c.Entry.Mode.OrDefault(), touched)
	return len(touched) == 0
}

// exceptions marks violations as undetermined if an exception may apply to them depending on a hidden value.
func (o *undetermined) exceptions(d *Decision, list []exception, in *Input) {
	for i := range list {
		x := &list[i]
		applies := slices.ContainsFunc(d.Deny, func(v Violation) bool { return v.Policy == x.Policy }) ||
			slices.ContainsFunc(d.Mutate, func(m Mutation) bool { return m.Policy == x.Policy })
		if touched := o.watch.Touched(x.inputPaths(in)...); len(touched) > 0 && applies {
			o.add(x.Policy, ModeEnforce, touched)
			drop(d, x.Policy)
		}
	}
}

// ratchet marks violations as undetermined unless the resource already violated the policy at least as much before the update. The price
// list that this comparison needs is not part of the record.
func (o *undetermined) ratchet(d *Decision, org *orgState, in *Input) {
	for _, policy := range org.ratcheting(d, in) {
		o.add(policy, ModeEnforce, []string{"/resource/current"})
		drop(d, policy)
	}
}

// mutations marks mutations as undetermined if the current value of their field is hidden.
func (o *undetermined) mutations(d *Decision) {
	for _, m := range d.Mutate {
		path, err := policyinput.SplitPointer(m.Pointer)
		if err != nil {
			continue // reported when the changes are combined
		}
		if touched := o.watch.Touched(append([]string{"request", "body"}, path...)); len(touched) > 0 {
			o.add(m.Policy, ModeEnforce, touched)
			drop(d, m.Policy)
		}
	}
}

// drop removes the verdict of a policy from d. It allocates new slices because the slices of d may be shared.
func drop(d *Decision, policy string) {
	d.Deny = slices.DeleteFunc(slices.Clone(d.Deny), func(v Violation) bool { return v.Policy == policy })
	d.Mutate = slices.DeleteFunc(slices.Clone(d.Mutate), func(m Mutation) bool { return m.Policy == policy })
}

// list returns the undetermined policies, sorted by policy and mode.
func (o *undetermined) list() []Undetermined {
	out := make([]Undetermined, 0, len(o.open))
	for k, touched := range o.open {
		slices.Sort(touched)
		out = append(out, Undetermined{Policy: k.policy, Mode: k.mode, Hidden: slices.Compact(touched)})
	}
	slices.SortFunc(out, func(a, b Undetermined) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Mode, b.Mode))
	})
	return out
}

// inputPaths returns the input paths that decide whether the exception applies.
func (x *exception) inputPaths(in *Input) [][]string {
	out := [][]string{{"caller", "team"}, {"caller", "key"}, {"caller", "roles"}, {"time", "ns"}}
	if x.costs {
		out = append(out, []string{"cost", "known"}, []string{"cost", "usd_per_hour"})
	}
	root := []string{"resource", "after"}
	if in.Resource.After == nil {
		root = []string{"request", "body"}
	}
	for _, path := range x.paths {
		out = append(out, slices.Concat(root, path))
	}
	return out
}
