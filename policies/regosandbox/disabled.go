package regosandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// DisabledGroup is a group of Rego functions that policies cannot call.
type DisabledGroup struct {
	// Names are the names of the functions. A name that ends in * matches all functions with that prefix.
	Names []string
	// Why names what the functions would give access to. Instead names alternatives.
	Why, Instead string
}

// DisabledFunctions returns the functions of Rego that policies cannot call.
func DisabledFunctions() []DisabledGroup {
	return []DisabledGroup{
		{[]string{"http.send", "net.lookup_ip_addr"}, "the network", "data next to the policies (`data.json`, `data.yaml`)"},
		{[]string{"time.now_ns"}, "the clock", "`input.time.ns`"},
		{[]string{"rand.intn", "uuid.*"}, "random numbers", "nothing: equal calls must have equal decisions"},
		{[]string{"opa.runtime", "rego.*", "trace"}, "the environment of the policies", "`input` and data; `print` in tests"},
		{
			[]string{"io.jwt.*", "crypto.*", "providers.aws.sign_req"},
			"keys and tokens",
			"`input.caller`, which the gateway has verified, and `crypto.sha256`",
		},
		{
			[]string{
				"numbers.*", "bits.lsh", "walk", "json.patch", "graph.*", "net.cidr_expand", "net.cidr_merge", "net.cidr_contains_matches",
				"strings.render_template", "strings.split_n", "regex.*", "glob.quote_meta",
			},
			"results much larger than the operands",
			"`some` and `every` over the input, `regex.match`, `split`, `strings.replace_n`, `net.cidr_contains`",
		},
		{
			[]string{
				"yaml.*", "graphql.*", "json.match_schema", "json.verify_schema", "json.marshal_with_options",
				"urlquery.*", "base64url.encode_no_pad",
			},
			"other formats and schemas", "`json.unmarshal`, `json.marshal`, `base64url.encode`, `uri.parse`; bodies have already been validated",
		},
		{
			[]string{"all", "any", "cast_*", "re_match", "net.cidr_overlap"},
			"functions that later versions of Rego remove",
			"`every`, `some`, `to_number`, `is_array` and the like, `regex.match`, `net.cidr_contains`",
		},
	}
}

// Explain returns why policies cannot call a function and what to use instead. ok is false if policies can call it, or if Rego has
// no such function.
func Explain(name string) (text string, ok bool) {
	if _, known := ast.BuiltinMap[name]; !known || slices.Contains(builtins(), name) {
		return "", false
	}
	for _, group := range DisabledFunctions() {
		if slices.ContainsFunc(group.Names, func(pattern string) bool { matched, err := path.Match(pattern, name); return err == nil && matched }) {
			return fmt.Sprintf("function %s is disabled (%s): use %s", name, group.Why, strings.ReplaceAll(group.Instead, "`", "")), true
		}
	}
	return fmt.Sprintf("function %s is disabled", name), true
}
