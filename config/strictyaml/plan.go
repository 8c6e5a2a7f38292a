package strictyaml

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// NumberUnmarshaler is implemented by types that decode a number from its text without rounding, such as decimal amounts of money. The text
// is an integer or a finite decimal number.
type NumberUnmarshaler interface {
	UnmarshalNumber(text string) error
}

// Enum is implemented by string types with a fixed set of values.
type Enum interface {
	// Values lists the accepted values. It must work on a zero receiver.
	Values() []string
}

// plan describes a Go type for the decoder and the schema.
type plan struct {
	typ    reflect.Type
	form   form
	plain  bool // formSecret: a URL without a password may be written directly
	values []string
	elem   *plan // of pointers, lists and maps
	key    *plan // of maps
	fields []*field
	shown  []int // index of the field of type *TextCache of a struct, nil without such a field
	// parts is the set of types that the type contains at any depth, including the type itself.
	parts map[reflect.Type]bool
}

// collect adds the types of the plan to a set.
func (pl *plan) collect(into map[reflect.Type]bool) {
	if into[pl.typ] {
		return
	}
	into[pl.typ] = true
	if pl.elem != nil {
		pl.elem.collect(into)
	}
	for _, f := range pl.fields {
		f.plan.collect(into)
	}
}

type field struct {
	name     string
	index    []int
	required bool
	doc      string
	reload   string // Restart or "live"; "" means the value of the enclosing section
	zero     string // meaning of a zero value: with "omit", Show leaves it out; any other text is added as a comment
	plan     *plan
}

// Restart is the reload tag of settings whose new values take effect only after a restart.
const Restart = "restart"

// reloaded returns the reload tag of the field, or section if the field has no tag.
func (f *field) reloaded(section string) string { return cmp.Or(f.reload, section) }

type form uint8

const (
	formBool form = iota
	formInt
	formUint
	formFloat
	formString
	formDuration
	formText
	formDecimal
	formSecret
	formAny
	formStruct
	formPointer
	formList
	formMap
)

// plans caches plans by type, because a configuration with many organisations needs the same plans many times.
var plans sync.Map

// planOf returns the plan of t. The plan is cached and never modified. planOf panics like planner.of.
func planOf(t reflect.Type) *plan {
	known, ok := plans.Load(t)
	if !ok {
		p := planner{}
		p.of(t)
		for _, pl := range p {
			pl.parts = make(map[reflect.Type]bool)
			pl.collect(pl.parts)
		}
		known, _ = plans.LoadOrStore(t, p[t])
	}
	return known.(*plan)
}

// planner holds the plans made so far, by type. It plans each type only once, so that types can be recursive.
type planner map[reflect.Type]*plan

// of returns the plan of t. It panics if t cannot be decoded; any test that decodes t reveals this.
func (p planner) of(t reflect.Type) *plan {
	if pl, ok := p[t]; ok {
		return pl
	}
	pl := &plan{typ: t}
	p[t] = pl
	p.fill(pl)
	return pl
}

func (p planner) fill(pl *plan) {
	t := pl.typ
	ptr := reflect.New(t).Interface()
	if e, ok := ptr.(Enum); ok {
		pl.values = e.Values()
	}
	_, text := ptr.(encoding.TextUnmarshaler)
	_, number := ptr.(NumberUnmarshaler)
	switch {
	case t == reflect.TypeFor[Secret]():
		pl.form = formSecret
		return
	case t == reflect.TypeFor[time.Duration]():
		pl.form = formDuration
		return
	case number:
		pl.form = formDecimal
		return
	case text:
		pl.form = formText
		return
	}
	switch t.Kind() {
	case reflect.Bool:
		pl.form = formBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		pl.form = formInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		pl.form = formUint
	case reflect.Float32, reflect.Float64:
		pl.form = formFloat
	case reflect.String:
		pl.form = formString
	case reflect.Interface:
		if t.NumMethod() != 0 {
			panic(fmt.Sprintf("strictyaml: cannot decode into interface %s", t))
		}
		pl.form = formAny
	case reflect.Struct:
		pl.form = formStruct
		p.fields(pl, t, nil)
	case reflect.Pointer:
		pl.form, pl.elem = formPointer, p.of(t.Elem())
	case reflect.Slice:
		pl.form, pl.elem = formList, p.of(t.Elem())
	case reflect.Map:
		pl.form, pl.key, pl.elem = formMap, p.of(t.Key()), p.of(t.Elem())
		if pl.key.form != formString && pl.key.form != formText {
			panic(fmt.Sprintf("strictyaml: keys of %s are not strings", t))
		}
	default:
		panic(fmt.Sprintf("strictyaml: cannot decode into %s", t))
	}
}

// fields adds the fields of struct t. index is the path of t in the outer struct.
func (p planner) fields(pl *plan, t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("yaml")
		name, options, _ := strings.Cut(tag, ",")
		at := append(slices.Clone(index), i)
		switch {
		case f.Type == reflect.TypeFor[*TextCache]():
			pl.shown = at
		case !f.IsExported() && !tagged, name == "-":
		case !f.IsExported():
			panic(fmt.Sprintf("strictyaml: %s.%s has a yaml tag and is not exported", t, f.Name))
		case slices.Contains(strings.Split(options, ","), "inline"):
			if f.Type.Kind() != reflect.Struct {
				panic(fmt.Sprintf("strictyaml: %s.%s is inline and not a struct", t, f.Name))
			}
			p.fields(pl, f.Type, at)
		case name == "":
			panic(fmt.Sprintf("strictyaml: %s.%s has no name in a yaml tag", t, f.Name))
		case pl.field(name) != nil:
			panic(fmt.Sprintf("strictyaml: %s has two fields named %q", pl.typ, name))
		default:
			of := p.of(f.Type)
			if slices.Contains(strings.Split(options, ","), "plain") {
				plain := *of
				plain.plain, of = true, &plain
			}
			pl.fields = append(pl.fields, &field{
				name: name, index: at, doc: f.Tag.Get("doc"), reload: f.Tag.Get("reload"), zero: f.Tag.Get("zero"), plan: of,
				required: slices.Contains(strings.Split(options, ","), "required"),
			})
		}
	}
}

// field returns the field with the given name, or nil if it does not exist.
func (pl *plan) field(name string) *field {
	i := slices.IndexFunc(pl.fields, func(f *field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return pl.fields[i]
}

// names lists the names of the fields in the order of the struct.
func (pl *plan) names() []string {
	names := make([]string, len(pl.fields))
	for i, f := range pl.fields {
		names[i] = f.name
	}
	return names
}

// zero returns a new settable value of the type.
func (pl *plan) zero() reflect.Value { return reflect.New(pl.typ).Elem() }

// forms holds, by form, how messages describe a value, and how to write an empty value.
var forms = [...]struct{ expected, empty string }{
	formBool:     {"true or false", ""},
	formInt:      {"an integer", ""},
	formUint:     {"an integer", ""},
	formFloat:    {"a number", ""},
	formString:   {"a string", `write "" for an empty string`},
	formDuration: {`a duration such as "1m30s"`, ""},
	formText:     {"a string", ""},
	formDecimal:  {"a number", ""},
	formSecret:   {secretForm, ""},
	formAny:      {"a string", ""},
	formStruct:   {"a mapping", "write {} for an empty mapping"},
	formList:     {"a list", "write [] for an empty list"},
	formMap:      {"a mapping", "write {} for an empty mapping"},
}

// expected describes how to write a value of the type, for messages.
func (pl *plan) expected() string {
	switch {
	case pl.form == formPointer:
		return pl.elem.expected()
	case pl.plain:
		return "a URL without a password, " + secretForm
	}
	return forms[pl.form].expected
}
