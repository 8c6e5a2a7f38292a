package regosandbox

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// builtins lists the built-in functions that policies may call. Calls of other functions are compile errors; [DisabledFunctions] gives
// the reasons. Functions whose result can be larger than their operands check sizes first; see bounded.
func builtins() []string {
	return []string{
		"abs", "and", "array.concat", "array.flatten", "array.reverse", "array.slice", "assign",
		"base64.decode", "base64.encode", "base64.is_valid", "base64url.decode", "base64url.encode",
		"bits.and", "bits.negate", "bits.or", "bits.rsh", "bits.xor",
		"ceil", "concat", "contains", "count", "crypto.sha256", "div",
		"endswith", "eq", "equal", "floor", "format_int", "glob.match", "gt", "gte", "hex.decode", "hex.encode",
		"indexof", "indexof_n", "internal.member_2", "internal.member_3", "internal.print",
		"internal.template_string", "internal.test_case", "intersection",
		"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string",
		"json.filter", "json.is_valid", "json.marshal", "json.remove", "json.unmarshal",
		"lower", "lt", "lte", "max", "min", "minus", "mul", "neq",
		"net.cidr_contains", "net.cidr_intersects", "net.cidr_is_valid",
		"object.filter", "object.get", "object.keys", "object.remove", "object.subset",
		"object.union", "object.union_n", "or", "plus", "print", "product", "regex.is_valid", "regex.match",
		"regex.split", "rem", "replace", "round", "semver.compare", "semver.is_valid", "set_diff", "sort", "split",
		"sprintf", "startswith", "strings.any_prefix_match", "strings.any_suffix_match", "strings.count",
		"strings.replace_n", "strings.reverse", "substring", "sum",
		"time.add_date", "time.clock", "time.date", "time.diff", "time.format", "time.parse_duration_ns",
		"time.parse_ns", "time.parse_rfc3339_ns", "time.weekday",
		"to_number", "trim", "trim_left", "trim_prefix", "trim_right", "trim_space", "trim_suffix", "type_name",
		"union", "units.parse", "units.parse_bytes", "upper", "uri.is_valid", "uri.parse",
	}
}

// Capabilities returns what Rego may use: the language of this version of OPA, the allowed built-in functions, and no network
// hosts.
func Capabilities() *ast.Capabilities {
	allowed := builtins()
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.Nondeterministic || !slices.Contains(allowed, b.Name)
	})
	c.AllowNet = []string{}
	return c
}
