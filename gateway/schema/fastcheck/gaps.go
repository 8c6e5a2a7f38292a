package fastcheck

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// implemented names the fields of a schema that programs implement.
var implemented = map[string]bool{
	"Location": true, "Draft": true, "Always": true, "Ref": true, "Extensions": true,
	"Types": true, "Constant": true, "Enum": true, "Format": true,
	"Not": true, "AllOf": true, "OneOf": true, "If": true, "Then": true,
	"MinProperties": true, "Required": true, "Properties": true, "AdditionalProperties": true, "DependentRequired": true,
	"UnevaluatedProperties": true,
	"MinItems":              true, "MaxItems": true, "UniqueItems": true, "Items2020": true, "ContainsEval": true,
	"MinLength": true, "MaxLength": true, "Pattern": true, "Minimum": true, "Maximum": true,
}

// none is an empty schema.
var none = reflect.ValueOf(jsonschema.Schema{
	MinProperties: -1, MaxProperties: -1, MinItems: -1, MaxItems: -1, MinContains: 1, MaxContains: -1, MinLength: -1, MaxLength: -1,
})

// others are the fields of a schema that programs do not implement.
var others = slices.DeleteFunc(reflect.VisibleFields(none.Type()),
	func(f reflect.StructField) bool { return !f.IsExported() || implemented[f.Name] })

// gaps returns a sorted list of the parts of root and its subschemas that programs do not implement. Each entry contains the location of
// the schema and the reason.
func gaps(settings *jsonschema.Compiler, root *jsonschema.Schema) []string {
	all := reachable(root)
	// Each step requires that the previous steps found no gaps.
	for _, find := range []func(*jsonschema.Schema) string{
		func(s *jsonschema.Schema) string { return keywordGap(settings, s) }, loopGap, evaluationGap,
	} {
		var found []string
		for _, s := range all {
			if gap := find(s); gap != "" {
				found = append(found, s.Location+": "+gap)
			}
		}
		if found != nil {
			slices.Sort(found)
			return found
		}
	}
	return nil
}

// reachable returns root and all its subschemas.
func reachable(root *jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	seen := make(map[*jsonschema.Schema]bool)
	var visit func(s *jsonschema.Schema)
	visit = func(s *jsonschema.Schema) {
		if seen[s] {
			return
		}
		seen[s] = true
		all = append(all, s)
		for _, sub := range slices.Concat(inPlace(s), parts(s)) {
			visit(sub)
		}
	}
	visit(root)
	return all
}

// keywordGap returns the reason why programs do not implement s, or "" if they do. It does not check subschemas. Keywords that
// jsonschema/v5 ignores are not gaps.
func keywordGap(settings *jsonschema.Compiler, s *jsonschema.Schema) string {
	v := reflect.ValueOf(s).Elem()
	for _, f := range others {
		value := v.FieldByIndex(f.Index)
		demands := !value.IsZero()
		if value.CanInt() {
			demands = value.Int() != none.FieldByIndex(f.Index).Int()
		}
		if demands {
			return "keyword " + strings.ToLower(f.Name[:1]) + f.Name[1:]
		}
	}
	for name, ext := range s.Extensions {
		if _, ok := ext.(Accepter); !ok {
			return "extension " + name
		}
	}
	switch {
	case s.Draft != jsonschema.Draft2020:
		return "dialect other than 2020-12"
	case s.Format != "" && !settings.AssertFormat:
		return "format that may not be asserted" // depends on the vocabulary of its metaschema
	case slices.ContainsFunc(s.Types, func(name string) bool { return typeNamed(name) == 0 }):
		return "unknown type"
	case !allStrings(s.Constant) || !allStrings(s.Enum):
		return "constant that is not a string"
	case !known(s.Minimum) || !known(s.Maximum):
		return "number that a float64 cannot represent"
	}
	return ""
}

// loopGap reports a schema that applies itself to the same value. During compilation, jsonschema/v5 detects only some of these loops.
// During validation, it rejects a value when it detects a loop, even in an irrelevant branch.
func loopGap(s *jsonschema.Schema) string {
	seen := make(map[*jsonschema.Schema]bool)
	var reaches func(from *jsonschema.Schema) bool
	reaches = func(from *jsonschema.Schema) bool {
		return slices.ContainsFunc(inPlace(from), func(next *jsonschema.Schema) bool {
			if next == s {
				return true
			}
			first := !seen[next]
			seen[next] = true
			return first && reaches(next)
		})
	}
	if reaches(s) {
		return "schema applies itself to the same value"
	}
	return ""
}

// evaluationGap reports a schema whose unevaluatedProperties applies to different members depending on which branches accept the value. A
// branch does not matter if its siblings evaluate the same members in any case.
func evaluationGap(s *jsonschema.Schema) string {
	if s.UnevaluatedProperties == nil {
		return ""
	}
	surely, perhaps := evaluated(s, always), evaluated(s, possible)
	if surely.all || !perhaps.all && len(surely.names) == len(perhaps.names) {
		return ""
	}
	return "evaluated members depend on the value"
}

// coverage is the set of members of an object that a schema evaluates.
type coverage struct {
	names map[string]bool
	all   bool
}

// evaluated returns the members that s and the schemas returned by edges evaluate. It ignores the unevaluatedProperties of s.
func evaluated(s *jsonschema.Schema, edges func(*jsonschema.Schema) []*jsonschema.Schema) *coverage {
	c := &coverage{names: make(map[string]bool), all: s.AdditionalProperties != nil}
	for name := range s.Properties {
		c.names[name] = true
	}
	for _, sub := range edges(s) {
		d := evaluated(sub, edges)
		c.all = c.all || d.all || sub.UnevaluatedProperties != nil
		maps.Copy(c.names, d.names)
	}
	return c
}

// inPlace returns the subschemas that s applies to the value itself.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	return slices.Concat(possible(s), present(s.Not))
}

// always returns the subschemas that must accept every value that s accepts.
func always(s *jsonschema.Schema) []*jsonschema.Schema { return slices.Concat(present(s.Ref), s.AllOf) }

// possible returns the subschemas that may accept a value of s: the subschemas of always, and others.
func possible(s *jsonschema.Schema) []*jsonschema.Schema {
	return slices.Concat(always(s), s.OneOf, present(s.If, s.Then))
}

// parts returns the subschemas that s applies to parts of the value.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	return slices.Concat(slices.Collect(maps.Values(s.Properties)), present(additional, s.UnevaluatedProperties, s.Items2020))
}

// present returns the non-nil schemas.
func present(schemas ...*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(schemas, func(s *jsonschema.Schema) bool { return s == nil })
}
