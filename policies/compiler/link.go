package compiler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/policyinput"
)

// File and package of the generated entrypoint.
const (
	entryFile    = "entrypoint.rego"
	entryPackage = "tollgate.entrypoint"
)

// Call is one policy call of the entrypoint: a library policy with constant parameters, or a rule of the organisation's own Rego.
type Call struct {
	Entry policyconfig.Entry
	// Rule is violations, mutations, deny, warn or mutate.
	Rule string
	// Doc links to the policy's documentation; it is "" for an organisation's own policy.
	Doc string
	// Reads is the part of the input that the call can read.
	Reads *policyinput.Projection

	params map[string]any
	from   string // package of the policy, without data.
	path   string // of the entry, below the organisation's configuration
	quick  quick
}

// isFunction reports whether the rule is a function of the parameters.
func (c Call) isFunction() bool { return c.Rule == "violations" || c.Rule == "mutations" }

// foreign reports whether the Rego is not from the library.
func (c Call) foreign() bool { return strings.HasPrefix(c.from, ownPackage) }

// entrypoint generates the Rego that calls the policies: one rule per call, whose parameters are in data. The engine treats an undefined
// rule as an error, so that an undefined rule cannot allow a call.
func entrypoint(calls []Call) string {
	var b strings.Builder
	b.WriteString("package " + entryPackage + "\n")
	for i, c := range calls {
		expr := c.expression(i)
		guard := guard(&c.Entry)
		if len(guard) == 0 {
			fmt.Fprintf(&b, "\nc%d := %s\n", i, expr)
			continue
		}
		fmt.Fprintf(&b, "\nc%d := %s if applies_%d\n\nc%d := set() if not applies_%d\n\napplies_%d if {\n\t%s\n}\n",
			i, expr, i, i, i, i, strings.Join(guard, "\n\t"))
	}
	return b.String()
}

func (c Call) expression(i int) string {
	target := "data." + c.from + "." + c.Rule
	if !c.isFunction() {
		return target
	}
	return fmt.Sprintf("%s(data.%s.params[%d])", target, reservedRoot, i)
}

// guard returns the conditions under which an entry applies to a caller, as lines of a rule body. nil means always.
func guard(e *policyconfig.Entry) []string {
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
		text, _ := json.Marshal(n) // a string always marshals
		quoted = append(quoted, string(text))
	}
	slices.Sort(quoted)
	return "{" + strings.Join(slices.Compact(quoted), ", ") + "}"
}
