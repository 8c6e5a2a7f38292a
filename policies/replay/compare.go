package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/policies"
)

// compare determines the kind of a call.
func (p *player) compare(e *event, now outcome) {
	add := func(k Kind, who []string, x Example) { p.report.add(k, who, x, p.opts.Examples) }
	now.deny = e.denies(now.deny)
	missing := slices.Concat(now.missing, openTexts(now.open, policies.ModeEnforce))
	was := e.old
	switch {
	case len(now.missing) > 0, !now.refused() && len(missing) > 0:
		// The verdicts known for certain allow the call, and an undetermined policy might refuse it.
		add(Undetermined, openNames(now.open, policies.ModeEnforce), e.example(was.refusal(), nil, missing))
		return
	case now.refused() && !was.refused():
		add(NewlyDenied, names(now.deny), e.example(nil, now.refusal(), missing))
		return
	case !now.refused() && was.refused():
		add(NewlyAllowed, names(was.deny), e.example(was.refusal(), nil, nil))
		return
	}
	open := openNames(now.open, policies.ModeEnforce)
	before, after := without(was.deny, open), without(now.deny, open)
	if who := difference(before, after); len(who) > 0 || (was.failed == "") != (now.failed == "") {
		add(ChangedReasons, who, e.example(was.refusal(), now.refusal(), missing))
		return
	}
	advice := openNames(now.open, policies.ModeWarn, policies.ModeShadow)
	before = without(slices.Concat(was.warn, was.shadow), advice)
	after = without(slices.Concat(now.warn, now.shadow), advice)
	if who := slices.Concat(
		difference(without(was.warn, advice), without(now.warn, advice)),
		difference(without(was.shadow, advice), without(now.shadow, advice)),
	); len(who) > 0 {
		add(ChangedAdvice, who, e.example(before, after, openTexts(now.open, policies.ModeWarn, policies.ModeShadow)))
		return
	}
	add(Same, nil, Example{})
}

// example returns the call for the report.
func (e *event) example(was, now []Reason, missing []string) Example {
	x := e.Example
	x.Was, x.Now, x.Missing = was, now, missing
	return x
}

// refusal returns the reasons why a call is refused, or nil.
func (v *verdict) refusal() []Reason {
	if v.failed != "" {
		return []Reason{{Message: v.failed}}
	}
	return v.deny
}

func names(list []Reason) []string {
	var out []string
	for _, r := range list {
		out = append(out, r.Policy)
	}
	return out
}

// without returns list without the reasons of some policies.
func without(list []Reason, policies []string) []Reason {
	return slices.DeleteFunc(slices.Clone(list), func(r Reason) bool { return slices.Contains(policies, r.Policy) })
}

// difference returns the policies that have a reason in only one of the lists.
func difference(a, b []Reason) []string {
	var out []string
	for _, r := range slices.Concat(a, b) {
		if !slices.Contains(a, r) || !slices.Contains(b, r) {
			out = append(out, r.Policy)
		}
	}
	return out
}

// openNames returns the names of the undetermined policies in the given modes.
func openNames(open []policies.Undetermined, modes ...policies.Mode) []string {
	var out []string
	for _, o := range open {
		if slices.Contains(modes, o.Mode) {
			out = append(out, o.Policy)
		}
	}
	return out
}

// openTexts describes what the undetermined policies read that is missing from the log. It omits names chosen by callers (variables
// in env) and argument numbers, so that equal gaps are counted together.
func openTexts(open []policies.Undetermined, modes ...policies.Mode) []string {
	var out []string
	for _, o := range open {
		if !slices.Contains(modes, o.Mode) {
			continue
		}
		var places []string
		for _, h := range o.Hidden {
			places = append(places, place(h))
		}
		slices.Sort(places)
		out = append(out, fmt.Sprintf("%s reads %s", o.Policy, strings.Join(slices.Compact(places), ", ")))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func place(pointer string) string {
	switch {
	case pointer == "":
		return "the input"
	case strings.HasPrefix(pointer, "/catalog/"):
		return "input.catalog, the price list"
	}
	parts := strings.Split(pointer[1:], "/")
	many := func(part string) bool { return part == "env" || part == "cmd" || part == "entrypoint" }
	if i := slices.IndexFunc(parts, many); i >= 0 && i < len(parts)-1 {
		parts = append(parts[:i+1], "*")
	}
	return "input." + strings.Join(parts, ".")
}

// byCalls sorts callers by number of calls, descending.
func byCalls(a, b CallerCount) int {
	return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Org, b.Org), cmp.Compare(a.Team, b.Team), cmp.Compare(a.Key, b.Key))
}
