package policies

import "slices"

// Held is how many evaluations hold a place.
func (e *Engine) Held() int { return len(e.places) }

// Unknown lists the policies of which nothing is remembered about a call.
func (e *Engine) Unknown(org string, in *Input) ([]string, error) {
	o := (*e.states.Load())[org]
	doc, err := in.Document()
	if err != nil {
		return nil, err
	}
	q := o.newEvaluation(doc, in.Time)
	q.recall()
	var out []string
	for i, s := range q.results {
		if s.decision == nil {
			out = append(out, o.Calls[i].Entry.Policy)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Shared reports whether two organisations, each of an engine, have one compilation, and
// whether they have one memory of verdicts.
func Shared(a *Engine, org string, b *Engine, other string) (compiled, memory bool) {
	x, y := (*a.states.Load())[org], (*b.states.Load())[other]
	return x.Compiled.SameAs(y.Compiled), x.memory == y.memory
}

// Allowed reports whether the call may pass as it is.
func (d *Decision) Allowed() bool { return len(d.Deny) == 0 && len(d.Mutate) == 0 }

// Reads lists the input paths an organisation's policies can read, dotted;
// the empty path is the whole input.
func (e *Engine) Reads(org string) (paths []string, ok bool) {
	o, err := e.state(org)
	if err != nil {
		return nil, false
	}
	return o.Compiled.Reads.Paths(), true
}

// SameFault is sameFault.
var SameFault = sameFault
