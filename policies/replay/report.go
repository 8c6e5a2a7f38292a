package replay

import (
	"maps"
	"slices"
)

// Kind classifies a call by the difference between the recorded and the new decision.
type Kind string

// kinds, most severe first.
const (
	// NewlyDenied calls were allowed and would be denied.
	NewlyDenied Kind = "newly_denied"
	// NewlyAllowed calls were denied and would be allowed.
	NewlyAllowed Kind = "newly_allowed"
	// ChangedReasons calls were denied and would be denied for other reasons.
	ChangedReasons Kind = "changed_reasons"
	// ChangedAdvice calls have the same verdict and different results of policies in mode warn or shadow.
	ChangedAdvice Kind = "changed_advice"
	// Undetermined calls have a verdict that may depend on values missing from the log.
	Undetermined Kind = "undetermined"
	// Same calls have the same decision.
	Same Kind = "same"
)

// kinds returns the kinds in the order of reports.
func kinds() []Kind {
	return []Kind{NewlyDenied, NewlyAllowed, ChangedReasons, ChangedAdvice, Undetermined, Same}
}

// Reason is a violation, or explains why the decision is missing.
type Reason struct {
	Policy  string `json:"policy,omitempty"`
	Message string `json:"message"`
	Pointer string `json:"pointer,omitempty"`
}

// Example is a call with its recorded decision and its new decision.
type Example struct {
	DecisionID string `json:"decision_id"`
	Time       string `json:"time"`
	Org        string `json:"org"`
	Team       string `json:"team,omitempty"`
	Key        string `json:"key,omitempty"`
	Operation  string `json:"operation"`
	// Was and Now are the recorded and the new reasons for denying the call. For ChangedAdvice they are the results of policies in
	// mode warn and shadow.
	Was []Reason `json:"was,omitempty"`
	Now []Reason `json:"now,omitempty"`
	// Missing explains why the call, or a part of it, is undetermined.
	Missing []string `json:"missing,omitempty"`
}

// Caller identifies a caller.
type Caller struct {
	Org  string `json:"org"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
}

// CallerCount is the number of calls of one caller.
type CallerCount struct {
	Caller
	Calls int `json:"calls"`
}

// Group holds the calls of one kind.
type Group struct {
	Kind  Kind `json:"kind"`
	Calls int  `json:"calls"`
	// Policies counts calls by the policies that caused the difference: the policies that would deny now, the policies that denied, or the
	// policies whose reasons differ. A call can count for several policies.
	Policies map[string]int `json:"policies,omitempty"`
	// Callers counts calls by caller, most calls first.
	Callers []CallerCount `json:"callers,omitempty"`
	// Missing counts the reasons why calls are undetermined.
	Missing map[string]int `json:"missing,omitempty"`
	// Examples are the first calls of the kind.
	Examples []Example `json:"examples,omitempty"`

	callers map[Caller]int
}

// Report is the result of a replay.
type Report struct {
	// Read is the number of events read. Skipped is the number of events of other organisations, and Other the number of events that are
	// not decisions of a gateway.
	Read    int `json:"read"`
	Skipped int `json:"skipped"`
	Other   int `json:"other"`
	// Unreadable counts damaged events. Faults describes the first ones.
	Unreadable int      `json:"unreadable"`
	Faults     []string `json:"faults,omitempty"`
	// Revisions maps organisations to the revision of the policies that were evaluated.
	Revisions map[string]string `json:"revisions"`
	// Groups holds the calls by kind, in the order of Kinds.
	Groups []*Group `json:"groups"`
}

// Group returns the group of a kind.
func (r *Report) Group(k Kind) *Group {
	i := slices.IndexFunc(r.Groups, func(g *Group) bool { return g.Kind == k })
	return r.Groups[i]
}

// Changed reports whether a verdict, or the reasons for a verdict, would differ.
func (r *Report) Changed() bool {
	return r.Group(NewlyDenied).Calls+r.Group(NewlyAllowed).Calls+r.Group(ChangedReasons).Calls > 0
}

func newReport() *Report {
	r := &Report{Revisions: map[string]string{}}
	for _, k := range kinds() {
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

// finish sorts the callers.
func (r *Report) finish() {
	for _, g := range r.Groups {
		for c, n := range maps.All(g.callers) {
			g.Callers = append(g.Callers, CallerCount{Caller: c, Calls: n})
		}
		slices.SortFunc(g.Callers, byCalls)
	}
}
