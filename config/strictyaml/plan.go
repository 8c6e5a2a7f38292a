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

// NumberUnmarshaler is implemented by types that take a plain number exactly as it is written, such as a decimal amount of money for
// which 0.1 must not become a binary fraction. It is given an integer or a finite decimal number.
type NumberUnmarshaler interface {
	UnmarshalNumber(text string) error
}

// Enum is implemented by types that take one of a closed list of strings.
type Enum interface {
	// Values lists the accepted values, for a zero receiver too.
	Values() []string
}

// plan describes a Go type to the decoder and the schema.
type plan struct {
	typ    reflect.Type
	form   form
	plain  bool // formSecret: takes URLs without a password as they are
	values []string
	elem   *plan // of pointers, lists and maps
	key    *plan // of maps
	fields []*field
	shown  []int // index of the field *Shown of a struct, nil for none
	// parts are the types within the type, itself included.
	parts map[reflect.Type]bool
}

// collect adds the types within the plan's type to a set.
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
	unit     string
	reload   string // Live, Restart, or "" for that of the section it is in
	zero     string // the meaning of a zero: "omit" has Show leave it out, another text is a comment behind it
	plan     *plan
}

// The values of the reload tag.
const (
	Live    = "live"
	Restart = "restart"
)

// reloaded is the reload of a field in a section with one.
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

// plans are those of the types that were asked for, by type: a configuration of a thousand organisations asks for one a thousand times.
var plans sync.Map

// planOf returns the plan of t, which is made once and not changed. It panics as planner.of does.
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

// planner plans each type once, so that types may refer to themselves.
type planner map[reflect.Type]*plan

// of returns the plan of t. It panics on types that cannot be decoded: a programming fault, found by the first test of a struct.
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

// fields collects the fields of struct t, reached by index from pl's own struct.
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
				name: name, index: at, doc: f.Tag.Get("doc"), unit: f.Tag.Get("unit"), reload: f.Tag.Get("reload"), zero: f.Tag.Get("zero"), plan: of,
				required: slices.Contains(strings.Split(options, ","), "required"),
			})
		}
	}
}

// field is the field of that name, or nil.
func (pl *plan) field(name string) *field {
	i := slices.IndexFunc(pl.fields, func(f *field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return pl.fields[i]
}

// names lists the names of the fields, in the order of the struct.
func (pl *plan) names() []string {
	names := make([]string, len(pl.fields))
	for i, f := range pl.fields {
		names[i] = f.name
	}
	return names
}

// zero returns a new settable value of the type.
func (pl *plan) zero() reflect.Value { return reflect.New(pl.typ).Elem() }

// expected names the type's written form, for messages.
func (pl *plan) expected() string {
	switch pl.form {
	case formBool:
		return "true or false"
	case formInt, formUint:
		return "an integer"
	case formFloat, formDecimal:
		return "a number"
	case formDuration:
		return `a duration such as "1m30s"`
	case formSecret:
		if pl.plain {
			return "a URL without a password, " + secretForm
		}
		return secretForm
	case formStruct, formMap:
		return "a mapping"
	case formList:
		return "a list"
	case formPointer:
		return pl.elem.expected()
	case formString, formText, formAny:
	}
	return "a string"
}
