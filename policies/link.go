package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// entryFile and entryPackage are those of the generated entrypoint.
const (
	entryFile    = "entrypoint.rego"
	entryPackage = "tollgate.entrypoint"
	answerVar    = "answer" // of the queries
)

// call is one call of the entrypoint: a policy switched on with constant
// parameters, or a rule of the organisation's own Rego.
type call struct {
	entry  Entry
	params map[string]any
	from   string // package of the policy, without data.
	rule   string // violations, mutations, deny, warn or mutate
	doc    string
}

// isFunction tells a call of the library's form from a plain rule.
func (c call) isFunction() bool { return c.rule == "violations" || c.rule == "mutations" }

// foreign tells a call of the organisation's own Rego from one of the library's.
func (c call) foreign() bool { return strings.HasPrefix(c.from, ownPackage) }

// link writes the entrypoint of an organisation: one rule per call. An
// undefined one is an error to the engine, so that a rule which ends nowhere
// cannot allow.
func link(calls []call) (string, error) {
	var b strings.Builder
	b.WriteString("package " + entryPackage + "\n")
	for i, c := range calls {
		expr, err := c.expression()
		if err != nil {
			return "", err
		}
		guard := c.entry.guard()
		if len(guard) == 0 {
			fmt.Fprintf(&b, "\nc%d := %s\n", i, expr)
			continue
		}
		fmt.Fprintf(&b, "\nc%d := %s if applies_%d\n\nc%d := set() if not applies_%d\n\napplies_%d if {\n\t%s\n}\n",
			i, expr, i, i, i, i, strings.Join(guard, "\n\t"))
	}
	return b.String(), nil
}

func (c call) expression() (string, error) {
	target := "data." + c.from + "." + c.rule
	if !c.isFunction() {
		return target, nil
	}
	text, err := json.Marshal(c.params)
	if err != nil {
		return "", fmt.Errorf("parameters: %w", err)
	}
	return target + "(" + string(text) + ")", nil
}

// guard is the condition under which an entry applies to a caller, as lines of
// a rule body; nil for "always".
func (e Entry) guard() []string {
	var g []string
	if len(e.Teams) > 0 {
		g = append(g, "input.caller.team in "+setOf(e.Teams))
	}
	if len(e.ExceptTeams) > 0 {
		g = append(g, "not input.caller.team in "+setOf(e.ExceptTeams))
	}
	if len(e.Roles) > 0 {
		g = append(g, "count({role | some role in input.caller.roles} & "+setOf(e.Roles)+") > 0")
	}
	if len(e.ExceptRoles) > 0 {
		g = append(g, "count({role | some role in input.caller.roles} & "+setOf(e.ExceptRoles)+") == 0")
	}
	return g
}

func setOf(names []string) string {
	quoted := make([]string, 0, len(names))
	for _, n := range names {
		text, err := json.Marshal(n)
		if err != nil {
			continue // a string always marshals
		}
		quoted = append(quoted, string(text))
	}
	slices.Sort(quoted)
	return "{" + strings.Join(slices.Compact(quoted), ", ") + "}"
}
