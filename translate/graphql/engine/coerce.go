package engine

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// coercer turns literals and variables into values by the type of the position
// they stand in. The type a document declares for a variable is not looked at:
// clients in the field declare types that cannot be listed.
//
// A variable is coerced once for each type it is used as, however often it is
// used, and its uses share the result.
type coercer struct {
	schema    *ast.Schema
	operation *ast.OperationDefinition
	variables map[string]any
	// words lists the values of each lenient enumeration.
	words map[string][]string
	// most bounds values, which counts what was coerced and compared so far.
	most, values int
	done         map[use]any
}

// use is a variable in a position of some type.
type use struct{ variable, typ string }

// spend counts one value.
func (c *coercer) spend() *Error {
	if c.values++; c.values > c.most {
		return Exceeds("values", c.most, "values in arguments")
	}
	return nil
}

// arguments coerces the arguments of one field.
func (c *coercer) arguments(given ast.ArgumentList, want ast.ArgumentDefinitionList) (map[string]any, *Error) {
	out := map[string]any{}
	for _, g := range given {
		v, fault := c.literal(g.Value, want.ForName(g.Name).Type, g.Name)
		if fault != nil {
			return nil, fault.at(g.Position)
		}
		if v != nil {
			out[g.Name] = v
		}
	}
	return out, nil
}

// literal coerces a value written in the document. nil means absent.
func (c *coercer) literal(v *ast.Value, t *ast.Type, path string) (any, *Error) {
	if v == nil {
		return nil, nil
	}
	if fault := c.spend(); fault != nil {
		return nil, fault
	}
	if v.Kind == ast.NullValue {
		return nil, nil
	}
	if v.Kind == ast.Variable {
		return c.variable(v.Raw, t)
	}
	if t.Elem != nil {
		if v.Kind != ast.ListValue {
			return c.single(c.literal(v, t.Elem, path))
		}
		return collect(len(v.Children), path, func(i int, path string) (any, *Error) {
			return c.literal(v.Children[i].Value, t.Elem, path)
		})
	}
	def := c.schema.Types[t.NamedType]
	switch v.Kind {
	case ast.ListValue:
		return nil, mismatch(path, t, "a list")
	case ast.ObjectValue:
		if def == nil || def.Kind != ast.InputObject {
			return nil, mismatch(path, t, "an object")
		}
		out := map[string]any{}
		for _, child := range v.Children {
			field := def.Fields.ForName(child.Name)
			if field == nil {
				return nil, unknownInput(child.Name, def).at(child.Position)
			}
			v, err := c.literal(child.Value, field.Type, path+"."+child.Name)
			if err != nil {
				return nil, err.at(child.Position)
			}
			if v != nil {
				out[child.Name] = v
			}
		}
		return out, nil
	case ast.IntValue, ast.FloatValue:
		return c.number(v.Raw, t, path)
	case ast.StringValue, ast.BlockValue:
		return c.text(v.Raw, t, path)
	case ast.EnumValue:
		if _, ok := c.words[t.NamedType]; !ok {
			return nil, mismatch(path, t, "an enumeration literal")
		}
		return c.text(v.Raw, t, path)
	case ast.BooleanValue:
		return c.boolean(v.Raw == "true", t, path)
	default: // variables and null were dealt with above
		return nil, mismatch(path, t, "an unknown value")
	}
}

// variable coerces what the request gives for $name, or its default.
func (c *coercer) variable(name string, t *ast.Type) (any, *Error) {
	key := use{name, t.String()}
	if v, ok := c.done[key]; ok {
		return v, nil
	}
	var out any
	var f *Error
	if v, ok := c.variables[name]; ok {
		out, f = c.decoded(v, t, "$"+name)
	} else {
		out, f = c.literal(c.operation.VariableDefinitions.ForName(name).DefaultValue, t, "$"+name)
	}
	if f != nil {
		return nil, f
	}
	if c.done == nil {
		c.done = map[use]any{}
	}
	c.done[key] = out
	return out, nil
}

// decoded coerces a decoded JSON value. nil means absent.
func (c *coercer) decoded(v any, t *ast.Type, path string) (any, *Error) {
	if fault := c.spend(); fault != nil {
		return nil, fault
	}
	if v == nil {
		return nil, nil
	}
	if t.Elem != nil {
		list, ok := v.([]any)
		if !ok {
			return c.single(c.decoded(v, t.Elem, path))
		}
		return collect(len(list), path, func(i int, path string) (any, *Error) {
			return c.decoded(list[i], t.Elem, path)
		})
	}
	switch v := v.(type) {
	case map[string]any:
		return c.decodedObject(v, t, path)
	case []any:
		return nil, mismatch(path, t, "a list")
	case string:
		return c.text(v, t, path)
	case bool:
		return c.boolean(v, t, path)
	case json.Number:
		return c.number(v.String(), t, path)
	}
	return nil, mismatch(path, t, "an unknown value")
}

func (c *coercer) decodedObject(v map[string]any, t *ast.Type, path string) (any, *Error) {
	def := c.schema.Types[t.NamedType]
	if def == nil || def.Kind != ast.InputObject {
		return nil, mismatch(path, t, "an object")
	}
	out := map[string]any{}
	for name, child := range v {
		field := def.Fields.ForName(name)
		if field == nil {
			return nil, unknownInput(name, def)
		}
		v, err := c.decoded(child, field.Type, path+"."+name)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out[name] = v
		}
	}
	return out, nil
}

// single makes the list of one that a lone value in a list position means.
func (c *coercer) single(v any, err *Error) (any, *Error) {
	if err != nil || v == nil {
		return nil, err
	}
	return []any{v}, nil
}

func collect(n int, path string, item func(int, string) (any, *Error)) (any, *Error) {
	out := make([]any, 0, n)
	for i := range n {
		v, err := item(i, path+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		if v != nil {
			out = append(out, v)
		}
	}
	return out, nil
}

// same reports whether two coerced values are equal. What is one and the same
// value, as two uses of a variable are, is not looked into.
func (c *coercer) same(a, b any) (bool, *Error) {
	if fault := c.spend(); fault != nil {
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
			if same, f := c.same(v, b[name]); f != nil || !same { // never nil where it is set
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
	case map[string]any, []any: // which cannot be compared
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
	case !ok:
		return nil, mismatch(path, t, "a string")
	case s == "":
		return nil, nil
	case !slices.Contains(words, s):
		return nil, badInput(path + `: "` + Clip(s) + `" is not one of ` + t.NamedType + ": " + strings.Join(words, ", "))
	}
	return s, nil
}

func (c *coercer) boolean(b bool, t *ast.Type, path string) (any, *Error) {
	if t.NamedType != "Boolean" {
		return nil, mismatch(path, t, "a boolean")
	}
	return b, nil
}

// number accepts an integral fraction where an Int is wanted, and the reverse.
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

// mismatch names the position and what was found, never the value: it may be
// a password.
func mismatch(path string, t *ast.Type, found string) *Error {
	return badInput(path + ": expected " + t.String() + ", found " + found)
}

func unknownInput(name string, def *ast.Definition) *Error {
	return badInput(`Field "` + Clip(name) + `" is not defined by type "` + def.Name + `".`)
}
