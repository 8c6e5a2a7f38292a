package engine

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// coercer converts literals and variables to Go values by the type of their position. It ignores the type that a document declares for a
// variable, because clients declare many wrong types.
//
// A variable is coerced once for each type of its positions. All positions of a type share the result.
type coercer struct {
	schema    *ast.Schema
	operation *ast.OperationDefinition
	variables map[string]any
	// words lists the values of each lenient enumeration.
	words map[string][]string
	// named is Config.Named.
	named func(string) string
	// values is the number of values coerced and compared so far, and most the maximum of values.
	most, values int
	done         map[use]any
	// unknown holds an error for each member that its input type does not have.
	unknown []*Error
}

// use is a variable in a position of some type.
type use struct{ variable, typ string }

// count counts one value against the limit.
func (c *coercer) count() *Error {
	if c.values++; c.values > c.most {
		return LimitExceeded("values", c.most, "values in arguments")
	}
	return nil
}

// arguments coerces the arguments of a field of type of.
func (c *coercer) arguments(f *ast.Field, of *ast.Definition) (map[string]any, *Error) {
	out := map[string]any{}
	for _, g := range f.Arguments {
		want := f.Definition.Arguments.ForName(g.Name)
		if want == nil {
			c.recordUnknown(g.Value, invalid(`Unknown argument "`+Clip(g.Name)+`" on field "`+of.Name+"."+f.Name+`".`).at(g.Position))
			continue
		}
		v, fault := c.value(g.Value, want.Type, g.Name)
		if fault != nil {
			return nil, fault.at(g.Position)
		}
		if v != nil {
			out[g.Name] = v
		}
	}
	return out, nil
}

// word is an enumeration literal; member is a member of an object literal.
type word string

type member struct {
	name  string
	value any
	at    *ast.Position
}

// plain converts a literal to the value that JSON would decode to. It returns nil for null and variables, and leaves the
// elements of lists and objects unconverted.
func plain(v *ast.Value) any {
	switch v.Kind {
	case ast.IntValue, ast.FloatValue:
		return json.Number(v.Raw)
	case ast.StringValue, ast.BlockValue:
		return v.Raw
	case ast.BooleanValue:
		return v.Raw == "true"
	case ast.EnumValue:
		return word(v.Raw)
	case ast.ListValue:
		return list(v.Children, func(child *ast.ChildValue) any { return child.Value })
	case ast.ObjectValue:
		members := make([]member, len(v.Children))
		for i, child := range v.Children {
			members[i] = member{child.Name, child.Value, child.Position}
		}
		return members
	case ast.NullValue, ast.Variable:
	}
	return nil
}

// value coerces a literal of the document or a decoded JSON value. Nil means absent.
func (c *coercer) value(v any, t *ast.Type, path string) (any, *Error) {
	if fault := c.count(); fault != nil {
		return nil, fault
	}
	if literal, ok := v.(*ast.Value); ok {
		if literal.Kind == ast.Variable {
			return c.variable(literal.Raw, t)
		}
		v = plain(literal)
	}
	switch items, isList := v.([]any); {
	case v == nil, t.NamedType == "JSON": // nothing reads values of this type
		return nil, nil
	case t.Elem == nil && isList && len(items) == 0:
		return nil, nil
	case t.Elem != nil && isList:
		return c.list(items, t.Elem, path)
	case t.Elem != nil: // a single value stands for a list of one
		item, fault := c.value(v, t.Elem, path)
		if fault != nil || item == nil {
			return nil, fault
		}
		return []any{item}, nil
	}
	switch v := v.(type) {
	case []member:
		return c.object(v, t, path)
	case map[string]any:
		members := make([]member, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			members = append(members, member{name: name, value: v[name]})
		}
		return c.object(members, t, path)
	case []any:
		return nil, mismatch(path, t, "a list")
	case string:
		return c.text(v, t, path)
	case word:
		if _, ok := c.words[t.NamedType]; !ok {
			return nil, mismatch(path, t, "an enumeration literal")
		}
		return c.text(string(v), t, path)
	case bool:
		if t.NamedType != "Boolean" {
			return nil, mismatch(path, t, "a boolean")
		}
		return v, nil
	case json.Number:
		return c.number(v.String(), t, path)
	}
	return nil, mismatch(path, t, "an unknown value")
}

func (c *coercer) list(items []any, of *ast.Type, path string) (any, *Error) {
	out := make([]any, 0, len(items))
	for i, item := range items {
		v, fault := c.value(item, of, path+"["+strconv.Itoa(i)+"]")
		if fault != nil {
			return nil, fault
		}
		if v != nil {
			out = append(out, v)
		}
	}
	return out, nil
}

func (c *coercer) object(members []member, t *ast.Type, path string) (any, *Error) {
	def := c.schema.Types[t.NamedType]
	if len(members) == 0 && (def == nil || def.Kind != ast.InputObject) {
		return nil, nil
	}
	if def == nil || def.Kind != ast.InputObject {
		return nil, mismatch(path, t, "an object")
	}
	out := make(map[string]any, len(members))
	for _, m := range members {
		name := c.named(m.name)
		field := def.Fields.ForName(name)
		if field == nil {
			text := `Field "` + Clip(m.name) + `" is not defined by type "` + def.Name + `".` + suggestion(m.name, def.Fields)
			c.recordUnknown(m.value, badInput(text).at(m.at))
			continue
		}
		v, fault := c.value(m.value, field.Type, path+"."+m.name)
		if fault != nil {
			return nil, fault.at(m.at)
		}
		if v != nil {
			out[name] = v
		}
	}
	return out, nil
}

// maxUnknown is the maximum number of unknown members in one refusal.
const maxUnknown = 20

// suggestion returns a sentence with the field whose name is closest to a misspelt one, or "".
func suggestion(name string, fields ast.FieldList) string {
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = field.Name
	}
	if near := fault.Nearest(name, names); near != "" {
		return ` Did you mean "` + near + `"?`
	}
	return ""
}

// recordUnknown records an unknown argument or member, unless its value is blank. Coercion continues, so that one refusal
// lists all of them.
func (c *coercer) recordUnknown(value any, fault *Error) {
	asks, exceeded := c.isSet(value)
	if exceeded != nil {
		fault = exceeded
	}
	if asks && len(c.unknown) < maxUnknown {
		c.unknown = append(c.unknown, fault)
	}
}

// isSet reports whether v is not blank. Blank values are null, a variable without a value, an empty string, list or object, and a list or
// object that contains only blank values. Clients send them for options that were not set.
func (c *coercer) isSet(v any) (bool, *Error) {
	if fault := c.count(); fault != nil {
		return true, fault
	}
	if literal, ok := v.(*ast.Value); ok {
		if literal.Kind == ast.Variable {
			return c.isSet(c.given(literal.Raw))
		}
		v = plain(literal)
	}
	var below []any
	switch v := v.(type) {
	case nil:
	case string:
		return v != "", nil
	case []any:
		below = v
	case []member:
		below = list(v, func(m member) any { return m.value })
	case map[string]any:
		below = slices.Collect(maps.Values(v))
	default:
		return true, nil
	}
	for _, item := range below {
		if asks, fault := c.isSet(item); asks || fault != nil {
			return true, fault
		}
	}
	return false, nil
}

// given returns the value of a variable in the request, or its default, or nil.
func (c *coercer) given(name string) any {
	v, given := c.variables[name]
	if def := c.operation.VariableDefinitions.ForName(name); !given && def.DefaultValue != nil {
		return def.DefaultValue
	}
	return v
}

// variable coerces the value of $name in the request, or its default.
func (c *coercer) variable(name string, t *ast.Type) (any, *Error) {
	key := use{name, t.String()}
	if v, ok := c.done[key]; ok {
		return v, nil
	}
	out, fault := c.value(c.given(name), t, "$"+name)
	if fault != nil {
		return nil, fault
	}
	if c.done == nil {
		c.done = map[use]any{}
	}
	c.done[key] = out
	return out, nil
}

// same reports whether two coerced values are equal. It does not descend into identical values, such as two uses of one
// variable.
func (c *coercer) same(a, b any) (bool, *Error) {
	if fault := c.count(); fault != nil {
		return false, fault
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		switch {
		case !ok || len(a) != len(b):
			return false, nil
		case reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer():
			return true, nil
		}
		for name, v := range a {
			if same, f := c.same(v, b[name]); f != nil || !same { // f is nil if same is set
				return false, f
			}
		}
		return true, nil
	case []any:
		b, ok := b.([]any)
		switch {
		case !ok || len(a) != len(b):
			return false, nil
		case len(a) == 0 || &a[0] == &b[0]:
			return true, nil
		}
		for i := range a {
			if same, f := c.same(a[i], b[i]); f != nil || !same {
				return false, f
			}
		}
		return true, nil
	}
	switch b.(type) {
	case map[string]any, []any: // not comparable with ==
		return false, nil
	}
	return a == b, nil
}

func (c *coercer) text(s string, t *ast.Type, path string) (any, *Error) {
	switch t.NamedType {
	case "String", "DateTime", "ID":
		return s, nil
	}
	words, ok := c.words[t.NamedType]
	switch {
	case s == "":
		return nil, nil
	case !ok:
		return nil, mismatch(path, t, "a string")
	case !slices.Contains(words, s):
		return nil, badInput(path + `: "` + Clip(s) + `" is not one of ` + t.NamedType + ": " + strings.Join(words, ", "))
	}
	return s, nil
}

// number accepts an integral fraction for an Int, and an integer for a Float.
func (c *coercer) number(raw string, t *ast.Type, path string) (any, *Error) {
	switch t.NamedType {
	case "Int":
		if n, err := strconv.ParseInt(raw, 10, 32); err == nil {
			return n, nil
		}
		f, err := strconv.ParseFloat(raw, 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
			return nil, badInput(path + ": Int cannot represent " + Clip(raw))
		}
		return int64(f), nil
	case "Float":
		f, err := strconv.ParseFloat(raw, 64)
		if err != nil {
			return nil, badInput(path + ": Float cannot represent " + Clip(raw))
		}
		return f, nil
	}
	return nil, mismatch(path, t, "a number")
}

// mismatch names the position and the actual type. It omits the value, which may be a password.
func mismatch(path string, t *ast.Type, found string) *Error {
	return badInput(path + ": expected " + t.String() + ", found " + found)
}
