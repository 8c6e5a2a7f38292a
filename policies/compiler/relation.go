package compiler

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// relation is a constraint on a parameter that depends on another parameter.
type relation struct{ demand, name, other string }

// demands maps the names of relations in METADATA to their checks: a number that is at most another, a list whose values are all
// (or none of them) in another list, a value that differs from another, and a text that matches a pattern. Each reports the
// violating values.
func demands() map[string]func(*fault.Found, relation, any, any) {
	return map[string]func(*fault.Found, relation, any, any){
		"at_most": atMost, "among": among, "apart": apart, "differs": differs, "matches": matches,
	}
}

// relationsOf reads the relations in METADATA, each of which maps parameters to other parameters.
func relationsOf(custom, specs map[string]any) ([]relation, error) {
	var out []relation
	for _, demand := range slices.Sorted(maps.Keys(demands())) {
		object, ok := custom[demand].(map[string]any)
		if custom[demand] != nil && !ok {
			return nil, fmt.Errorf("%s: must be a map of parameters", demand)
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			other, _ := object[name].(string)
			if specs[name] == nil || specs[other] == nil {
				return nil, fmt.Errorf("%s: %s and %v must both be parameters", demand, name, object[name])
			}
			out = append(out, relation{demand, name, other})
		}
	}
	return out, nil
}

// contradictions reports values that violate a relation.
func contradictions(relations []relation, given map[string]any) []error {
	var found fault.Found
	known := demands()
	for _, r := range relations {
		known[r.demand](&found, r, given[r.name], given[r.other])
	}
	return found
}

func atMost(found *fault.Found, r relation, value, other any) {
	found.If(exceeds(value, other), r.name, "%v exceeds %s (%v)", value, r.other, other)
}

func among(found *fault.Found, r relation, value, other any) {
	chosen, _ := value.([]any)
	allowed, _ := other.([]any)
	for i, v := range chosen {
		found.If(len(allowed) > 0 && !coveredBy(allowed, v), fault.Index(r.name, i), "%q is not in %s", v, r.other)
	}
}

func apart(found *fault.Found, r relation, value, other any) {
	wanted, _ := value.([]any)
	refused, _ := other.([]any)
	for i, v := range wanted {
		found.If(coveredBy(refused, v), fault.Index(r.name, i), "%q is also in %s and is therefore always refused", v, r.other)
	}
}

func differs(found *fault.Found, r relation, value, other any) {
	found.If(value != nil && value == other, r.name, "is %v, the same as %s, so everything is refused", value, r.other)
}

func matches(found *fault.Found, r relation, value, other any) {
	text, _ := value.(string)
	pattern, _ := other.(string)
	whole, err := regexp.Compile("^(?:" + pattern + ")$")
	found.If(err == nil && text != "" && pattern != "" && !whole.MatchString(text), r.name, "%q does not match %s", text, r.other)
}

// number returns a parameter as a number. ok is false if the parameter is absent or not a number.
func number(v any) (n float64, ok bool) {
	n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	return n, err == nil
}

// exceeds reports whether v and most are numbers, and v is greater.
func exceeds(v, most any) bool {
	n, ok1 := number(v)
	limit, ok2 := number(most)
	return ok1 && ok2 && n > limit
}

// coveredBy reports whether a list contains a name. Items of the list may end in *.
func coveredBy(list []any, name any) bool {
	return slices.ContainsFunc(list, func(pattern any) bool { return covers(fmt.Sprint(pattern), fmt.Sprint(name)) })
}

// covers reports whether a name matches a pattern, which may end in *.
func covers(pattern, name string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return pattern == name || open && strings.HasPrefix(name, prefix)
}
