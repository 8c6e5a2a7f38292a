package strictyaml

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// durationPattern matches the texts that time.ParseDuration accepts, without a sign.
const durationPattern = `^(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// Schema returns a JSON Schema (2020-12) of the configuration struct v, for editors and documentation.
// Property names come from the yaml tags, descriptions from `doc:"..."` tags, and defaults from the values in v.
//
// Every file that [Decode] accepts is valid under the schema. The schema also accepts some files that Decode refuses, because JSON Schema
// cannot express the rule: text that UnmarshalText or UnmarshalNumber rejects, durations that are too long, integers written as 1.0,
// numbers out of range for their field (in fields of type any, beyond 64 bits), and faults of the YAML itself.
func Schema(v any, title string) ([]byte, error) {
	value := reflect.ValueOf(v)
	g := &schemaWriter{defs: object{}}
	root := planOf(value.Type())
	doc := object{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}}
	doc = append(doc, g.of(root, value)...)
	if len(g.defs) > 0 {
		doc = append(doc, member{"$defs", g.defs})
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema of %T: %w", v, err)
	}
	return append(text, '\n'), nil
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(m.name) // a string always marshals
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schemaWriter generates a schema and collects the definitions of recursive types. It repeats the schema of all other types wherever they
// occur, so that each occurrence shows its own defaults.
type schemaWriter struct {
	defs object
}

// of returns the schema of one occurrence of a type. v is the default.
func (g *schemaWriter) of(pl *plan, v reflect.Value) object {
	if pl.form != formStruct || !holds(pl, pl, map[*plan]bool{}) {
		return g.body(pl, v)
	}
	name := strings.TrimPrefix(pl.typ.String(), "*")
	if !slices.ContainsFunc(g.defs, func(m member) bool { return m.name == name }) {
		at := len(g.defs)
		g.defs = append(g.defs, member{name: name}) // added before the body, which refers to it
		g.defs[at].value = g.body(pl, pl.zero())
	}
	return object{{"$ref", "#/$defs/" + name}}
}

// holds reports whether a value of type pl can contain a value of type inner, at any depth.
func holds(pl, inner *plan, seen map[*plan]bool) bool {
	if pl == nil || seen[pl] {
		return false
	}
	seen[pl] = true
	if pl.elem == inner || holds(pl.elem, inner, seen) {
		return true
	}
	return slices.ContainsFunc(pl.fields, func(f *field) bool { return f.plan == inner || holds(f.plan, inner, seen) })
}

func (g *schemaWriter) body(pl *plan, v reflect.Value) object {
	switch pl.form {
	case formBool:
		return object{{"type", "boolean"}}
	case formInt:
		bits := pl.typ.Bits()
		return object{{"type", "integer"}, {"minimum", int64(-1) << (bits - 1)}, {"maximum", int64(1)<<(bits-1) - 1}}
	case formUint:
		return object{{"type", "integer"}, {"minimum", 0}, {"maximum", ^uint64(0) >> (64 - pl.typ.Bits())}}
	case formFloat, formDecimal:
		return object{{"type", "number"}}
	case formString, formText:
		if pl.values != nil {
			return object{{"enum", pl.values}}
		}
		return object{{"type", "string"}}
	case formDuration:
		return object{{"type", "string"}, {"pattern", durationPattern}}
	case formSecret:
		if pl.plain {
			return object{{"anyOf", []object{{{"type", "string"}}, secretSchema()}}}
		}
		return secretSchema()
	case formPointer:
		if !v.IsNil() {
			return g.of(pl.elem, v.Elem())
		}
		return g.of(pl.elem, pl.elem.zero())
	case formList:
		return object{{"type", "array"}, {"items", g.of(pl.elem, pl.elem.zero())}}
	case formMap:
		out := object{{"type", "object"}, {"additionalProperties", g.of(pl.elem, pl.elem.zero())}}
		if pl.key.values != nil {
			out = append(out, member{"propertyNames", object{{"enum", pl.key.values}}})
		}
		return out
	case formStruct:
		return g.structure(pl, v)
	case formAny:
	}
	return object{}
}

func secretSchema() object {
	return object{
		{"type", "object"},
		{"description", "A reference to a secret: the name of an environment variable, or the path of a file."},
		{"properties", object{
			{"env", object{{"type", "string"}, {"pattern", envPattern}}},
			{"file", object{{"type", "string"}, {"pattern", filePattern}}},
		}},
		{"additionalProperties", false},
		{"minProperties", 1},
		{"maxProperties", 1},
	}
}

func (g *schemaWriter) structure(pl *plan, v reflect.Value) object {
	properties, required := object{}, []string{}
	for _, f := range pl.fields {
		value := v.FieldByIndex(f.index)
		schema := g.of(f.plan, value)
		if f.doc != "" {
			schema = slices.DeleteFunc(schema, func(m member) bool { return m.name == "description" })
			schema = append(object{{"description", f.doc}}, schema...)
		}
		if def, ok := written(f.plan, value); ok {
			schema = append(schema, member{"default", def})
		}
		properties = append(properties, member{f.name, schema})
		if f.required {
			required = append(required, f.name)
		}
	}
	out := object{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		out = append(out, member{"required", required})
	}
	return append(out, member{"additionalProperties", false})
}

// written returns a default in the form used in a file, and whether the schema shows the default. The schema shows no default for structs,
// because it shows the defaults of their fields. It shows a zero value only for booleans; for other types, a zero value means that the
// default is unset.
func written(pl *plan, v reflect.Value) (any, bool) {
	if pl.form != formBool && v.IsZero() {
		return nil, false
	}
	switch pl.form {
	case formBool, formInt, formUint, formFloat, formString:
		return v.Interface(), true
	case formDuration:
		return shortDuration(time.Duration(v.Int())), true
	case formText:
		if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
			text, err := m.MarshalText()
			return string(text), err == nil
		}
		return v.String(), v.Kind() == reflect.String
	case formPointer:
		return written(pl.elem, v.Elem())
	case formList:
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			item, ok := written(pl.elem, v.Index(i))
			if !ok {
				return nil, false
			}
			list = append(list, item)
		}
		return list, true
	case formDecimal, formSecret, formAny, formStruct, formMap:
	}
	return nil, false
}

// shortDuration formats a duration without trailing zero units. For example, it returns 1m instead of 1m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
