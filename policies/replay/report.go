package replay

import (
	"maps"
	"slices"
)

// Kind is how a call would have fared.
type Kind string

// The kinds, worst first.
const (
	// NewlyDenied: it passed, and would be refused.
	NewlyDenied Kind = "newly_denied"
	// NewlyAllowed: it was refused, and would pass.
	NewlyAllowed Kind = "newly_allowed"
	// ChangedReasons: it was refused, and would be for other reasons.
	ChangedReasons Kind = "changed_reasons"
	// ChangedAdvice: the verdict stays; the advice of policies in mode warn and shadow does
	// not.
	ChangedAdvice Kind = "changed_advice"
	// Undetermined: the verdict may depend on something the log does not hold.
	Undetermined Kind = "not_judged"
	// Same: nothing changes.
	Same Kind = "same"
)

// Kinds lists the kinds in the order of reports.
func Kinds() []Kind {
	return []Kind{NewlyDenied, NewlyAllowed, ChangedReasons, ChangedAdvice, Undetermined, Same}
}

// Reason is one violation, or why there is no decision.
type Reason struct {
	Policy  string `json:"policy,omitempty"`
	Message string `json:"message"`
	Pointer string `json:"pointer,omitempty"`
}

// Example is one call of a kind.
type Example struct {
	DecisionID string `json:"decision_id"`
	Time       string `json:"time"`
	Org        string `json:"org"`
	Team       string `json:"team,omitempty"`
	Key        string `json:"key,omitempty"`
	Operation  string `json:"operation"`
	// Was and Now are the reasons for refusing it; for ChangedAdvice, the advice of policies
	// in mode warn and shadow.
	Was []Reason `json:"was,omitempty"`
	Now []Reason `json:"now,omitempty"`
	// Missing says why it is not judged, or which part of it is not.
	Missing []string `json:"missing,omitempty"`
}

// Caller is a caller.
type Caller struct {
	Org  string `json:"org"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
}

// CallerCount is how many calls a caller made.
type CallerCount struct {
	Caller
	Calls int `json:"calls"`
}

// Group has the findings of one kind.
type Group struct {
	Kind  Kind `json:"kind"`
	Calls int  `json:"calls"`
	// Policies counts calls by the policies that make the difference: those
	// that refuse now, those that refused, or those whose reasons differ. A
	// call may count for several.
	Policies map[string]int `json:"policies,omitempty"`
	// Callers counts calls by caller, most first.
	Callers []CallerCount `json:"callers,omitempty"`
	// Missing counts the reasons why calls could not be judged.
	Missing map[string]int `json:"missing,omitempty"`
	// Examples are the first calls of the kind.
	Examples []Example `json:"examples,omitempty"`

	callers map[Caller]int
}

// Report is the result of a replay.
type Report struct {
	// Read counts the events read, of them Skipped those of other organisations
	// and Other those that are no decisions of a gateway.
	Read    int `json:"read"`
	Skipped int `json:"skipped"`
	Other   int `json:"other"`
	// Unreadable counts events that are damaged; Faults tells of the first.
	Unreadable int      `json:"unreadable"`
	Faults     []string `json:"faults,omitempty"`
	// Revisions names the policies the calls were judged by, by organisation.
	Revisions map[string]string `json:"revisions"`
	// Groups are the calls by kind, in the order of Kinds.
	Groups []*Group `json:"groups"`
}

// Group finds the findings of a kind.
func (r *Report) Group(k Kind) *Group {
	i := slices.IndexFunc(r.Groups, func(g *Group) bool { return g.Kind == k })
	return r.Groups[i]
}

// Changed reports whether a verdict, or the reasons for one, would be different.
func (r *Report) Changed() bool {
	return r.Group(NewlyDenied).Calls+r.Group(NewlyAllowed).Calls+r.Group(ChangedReasons).Calls > 0
}

func newReport() *Report {
	r := &Report{Revisions: map[string]string{}}
	for _, k := range Kinds() {
		r.Groups = append(r.Groups, &Group{Kind: k, Policies: map[string]int{}, Missing: map[string]int{}, callers: map[Caller]int{}})
	}
	return r
}

// add counts a call.
func (r *Report) add(k Kind, policies []string, x Example, most int) {
	g := r.Group(k)
	g.Calls++
	if k == Same {
		return
	}
	slices.Sort(policies)
	for _, p := range slices.Compact(policies) {
		g.Policies[p]++
	}
	for _, m := range x.Missing {
		g.Missing[m]++
	}
	g.callers[Caller{Org: x.Org, Team: x.Team, Key: x.Key}]++
	if len(g.Examples) < most {
		g.Examples = append(g.Examples, x)
	}
}

// finish puts callers in order.
func (r *Report) finish() {
	for _, g := range r.Groups {
		for c, n := range maps.All(g.callers) {
			g.Callers = append(g.Callers, CallerCount{Caller: c, Calls: n})
		}
		slices.SortFunc(g.Callers, byCalls)
	}
}
