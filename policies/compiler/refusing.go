package compiler

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// maxName is the length of the longest resource name the platform accepts (reference platform-v2).
const maxName = 191

// refusing reports parameters with which an entry refuses everything, and team or role lists that do not mean what they seem to.
func refusing(e *policyconfig.Entry) []error {
	var out fault.Found
	for name, list := range map[string][]string{"teams": e.Teams, "except_teams": e.ExceptTeams, "roles": e.Roles, "except_roles": e.ExceptRoles} {
		out.If(list != nil && len(list) == 0, name, "is empty, so the entry applies to everyone: delete it or add a name")
	}
	p, ok := Lookup(e.Policy)
	if !ok {
		return out
	}
	given, _ := p.params.check(e.Params) // Check reports the errors
	for _, name := range p.params.allowLists {
		list, isList := given[name].([]any)
		_, written := e.Params[name]
		out.If(isList && len(list) == 0 && written && e.Policy != "images" && e.Policy != "gpu_allow_list", "params."+name,
			"is empty, so everything is refused: add the allowed values or delete it")
	}
	switch e.Policy {
	case "gpu_allow_list":
		gpus, _ := given["gpus"].([]any)
		offers, _ := given["by_offer"].(map[string]any)
		out.If(len(gpus)+len(offers) == 0, "policy",
			"gpu_allow_list without params.gpus or params.by_offer refuses every GPU: list the allowed GPU types")
	case "price_ceiling":
		for _, name := range []string{"max_usd_per_hour", "max_usd_per_gpu_hour"} {
			n, ok := number(given[name])
			out.If(ok && n < policyconfig.MinPodPrice, "params."+name, "%v USD is below every price, so everything is refused", given[name])
		}
	case "gpu_in_flight", "gpu_count":
		for _, name := range []string{"max_per_team", "max_per_org", "max_per_pod"} {
			n, ok := number(given[name])
			out.If(ok && n == 0, "params."+name, "is 0, so everything with a GPU is refused")
		}
	case "naming":
		out = append(out, fault.At("params", unnameable(given)))
	}
	return out
}

// unnameable reports a pattern that no name matches.
func unnameable(given map[string]any) error {
	text, isText := given["pattern"].(string)
	pattern, err := syntax.Parse(text, syntax.Perl)
	if !isText || err != nil {
		return nil //nolint:nilerr // the fault of a bad pattern is Check's
	}
	most := maxName
	if n, err := strconv.Atoi(fmt.Sprint(given["max_length"])); err == nil {
		most = min(most, n)
	}
	switch least := shortest(pattern); {
	case text == "":
		return fault.Errorf("pattern", "is empty and matches no name, so everything is refused: use a pattern such as [a-z][a-z0-9-]*")
	case least > most:
		return fault.Errorf("pattern", "matches only names of at least %d characters, but names have at most %d, so everything is refused",
			least, most)
	}
	return nil
}

// shortest returns the length in characters of the shortest text that a pattern matches.
func shortest(r *syntax.Regexp) int {
	switch r.Op { //nolint:exhaustive // the others match the empty text
	case syntax.OpLiteral:
		return len(r.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.RuneLen('a')
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(r.Sub[0])
	case syntax.OpRepeat:
		return r.Min * shortest(r.Sub[0])
	case syntax.OpConcat:
		n := 0
		for _, sub := range r.Sub {
			n += shortest(sub)
		}
		return n
	case syntax.OpAlternate:
		least := shortest(r.Sub[0])
		for _, sub := range r.Sub[1:] {
			least = min(least, shortest(sub))
		}
		return least
	}
	return 0
}

// meets reports whether a caller can be subject to both entries.
func meets(a, b *policyconfig.Entry) bool {
	within := func(list, all []string) bool {
		return len(list) > 0 && !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(all, s) })
	}
	apart := func(x, y []string) bool {
		return len(x) > 0 && len(y) > 0 && !slices.ContainsFunc(x, func(s string) bool { return slices.Contains(y, s) })
	}
	return !apart(a.Teams, b.Teams) && !apart(a.Roles, b.Roles) &&
		!within(a.Teams, b.ExceptTeams) && !within(b.Teams, a.ExceptTeams) && !within(a.Roles, b.ExceptRoles) && !within(b.Roles, a.ExceptRoles)
}

// everyone reports whether an entry applies to all callers.
func everyone(e *policyconfig.Entry) bool {
	return len(e.Teams)+len(e.ExceptTeams)+len(e.Roles)+len(e.ExceptRoles) == 0
}
