package regosandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Off describes functions of Rego that policies cannot call.
type Off struct {
	// Names are the names of the functions. A name that ends in * matches all functions with that prefix.
	Names []string
	// Why names what the functions would give access to. Instead names the alternatives.
	Why, Instead string
}

// SwitchedOff returns the functions of Rego that policies cannot call.
func SwitchedOff() []Off {
	return []Off{
		{[]string{"http.send", "net.lookup_ip_addr"}, "the network", "data beside the policies (`data.json`, `data.yaml`)"},
		{[]string{"time.now_ns"}, "the clock", "`input.time.ns`"},
		{[]string{"rand.intn", "uuid.*"}, "random numbers", "nothing: equal calls must have equal decisions"},
		{[]string{"opa.runtime", "rego.*", "trace"}, "the environment of the policies", "`input` and data; `print` in tests"},
		{[]string{"io.jwt.*", "crypto.*", "providers.aws.sign_req"}, "keys and tokens", "`input.caller`, which the gateway has verified, and `crypto.sha256`"},
		{
			[]string{
				"numbers.*", "bits.lsh", "walk", "json.patch", "graph.*", "net.cidr_expand", "net.cidr_merge", "net.cidr_contains_matches", "strings.render_template",
				"strings.split_n", "regex.*", "glob.quote_meta",
			},
			"results much larger than the operands",
			"`some` and `every` over what the input has, `regex.match`, `split`, `strings.replace_n`, `net.cidr_contains`",
		},
		{
			[]string{"yaml.*", "graphql.*", "json.match_schema", "json.verify_schema", "json.marshal_with_options", "urlquery.*", "base64url.encode_no_pad"},
			"other formats and schemas", "`json.unmarshal`, `json.marshal`, `base64url.encode`, `uri.parse`; bodies were validated before",
		},
		{[]string{"all", "any", "cast_*", "re_match", "net.cidr_overlap"}, "functions that later versions of Rego remove", "`every`, `some`, `to_number`, `is_array` and the like, `regex.match`, `net.cidr_contains`"},
	}
}

// Explain returns why policies cannot call a function and what to use instead. ok is false if policies can call it, or if Rego has
// no such function.
func Explain(name string) (text string, ok bool) {
	if _, known := ast.BuiltinMap[name]; !known || slices.Contains(builtins(), name) {
		return "", false
	}
	for _, off := range SwitchedOff() {
		if slices.ContainsFunc(off.Names, func(pattern string) bool { matched, err := path.Match(pattern, name); return err == nil && matched }) {
			return fmt.Sprintf("function %s is disabled (%s): use %s", name, off.Why, strings.ReplaceAll(off.Instead, "`", "")), true
		}
	}
	return fmt.Sprintf("function %s is disabled", name), true
}
