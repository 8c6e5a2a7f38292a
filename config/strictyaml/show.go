package strictyaml

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"
)

// Masked is shown in place of a masked value.
const Masked = "[masked]"

// Show formats the configuration struct v, or the struct that v points to, as YAML. The output includes defaults, and omits empty values
// and zero values of fields with the tag zero:"omit". If the zero tag has another text, the text is added as a comment to a zero value.
// Show prints references in place of secrets, and [Masked] in place of the values of masked keys and the user information of URLs.
func Show(v any, masked ...string) ([]byte, error) {
	value := reflect.ValueOf(v)
	p := printer{masked: masked}
	shown, err := p.value(planOf(value.Type()), value, top, 0)
	if !shown || err != nil {
		return []byte("null\n"), err
	}
	return p.out, nil
}

// TextCache caches the YAML text of an immutable list item between calls of [Show]. To use it, add a field of type *TextCache to the struct
// type of the item. The zero value is an empty cache.
type TextCache struct{ text atomic.Pointer[shownText] }

// shownText is a cached text with the indentation and the masked keys for which it was formatted.
type shownText struct {
	indent int
	masked []string
	text   []byte
}

// printer formats YAML like the YAML library, but calls the library only for text that may need quotes. Formatting everything with the
// library would take ten times as long.
type printer struct {
	out    []byte
	masked []string // keys whose values are not shown
	inline bool     // the next entry continues the line of a dash
}

// position is the kind of text that precedes a value on its line.
type position int

const (
	top       position = iota // the whole document
	afterKey                  // after a key and its colon
	afterDash                 // after a dash, or after a colon on a line of its own
)

// step is the indentation of nested collections.
const step = 2

// value writes a value. If the value is empty, it writes nothing and returns false.
func (p *printer) value(pl *plan, v reflect.Value, at position, indent int) (shown bool, err error) {
	switch pl.form { //nolint:exhaustive // all others are scalars
	case formPointer:
		if v.IsNil() {
			return false, nil
		}
		return p.value(pl.elem, v.Elem(), at, indent)
	case formStruct, formMap, formList:
		return p.collection(pl, v, at, indent)
	case formSecret:
		secret := v.Interface().(Secret)
		if secret.text != "" {
			return true, p.text(secret.text, at, indent)
		}
		if env, file := secret.Reference(); env != "" || file != "" {
			indent = p.open(at, indent)
			p.lead(indent)
			p.out = append(p.out, map[bool]string{true: "env:", false: "file:"}[env != ""]...)
			return true, p.text(env+file, afterKey, indent)
		}
	case formAny:
		switch x := v.Interface().(type) {
		case string:
			return true, p.text(x, at, indent)
		case []any:
			if len(x) > 0 {
				return p.collection(&plan{form: formList, elem: pl}, v.Elem(), at, indent)
			}
		case int64:
			p.line(strconv.FormatInt(x, 10))
			return true, nil
		}
	case formBool:
		p.line(strconv.FormatBool(v.Bool()))
		return true, nil
	case formInt:
		p.line(strconv.FormatInt(v.Int(), 10))
		return true, nil
	case formDuration:
		if text := shortDuration(time.Duration(v.Int())); !strings.Contains(text, "µ") {
			p.line(text)
			return true, nil
		}
	case formString:
		if v.Len() > 0 {
			return true, p.text(v.String(), at, indent)
		}
	}
	n, err := scalar(pl, v)
	if n == nil || err != nil {
		return false, err
	}
	return true, p.tree(n, at, indent)
}

// collection writes a struct, a map or a list.
func (p *printer) collection(pl *plan, v reflect.Value, at position, indent int) (shown bool, err error) {
	before := len(p.out)
	indent = p.open(at, indent)
	opened := len(p.out)
	switch pl.form { //nolint:exhaustive // all others are not collections
	case formStruct:
		for _, f := range pl.fields {
			if f.zero != "" && v.FieldByIndex(f.index).IsZero() {
				p.zero(f, indent)
				continue
			}
			err = errors.Join(err, p.entry(f.name, f.plan, v.FieldByIndex(f.index), indent))
		}
	case formMap:
		for _, key := range sortedKeys(v) {
			err = errors.Join(err, p.entry(fmt.Sprint(key), pl.elem, v.MapIndex(key), indent))
		}
	case formList:
		for i := range v.Len() {
			err = errors.Join(err, p.item(pl.elem, v.Index(i), indent))
		}
	}
	if len(p.out) == opened { // the collection is empty
		p.out, p.inline = p.out[:before], false
		return false, err
	}
	return true, err
}

// zero writes a zero value with its meaning as a comment, or nothing if the tag of the field is zero:"omit".
func (p *printer) zero(f *field, indent int) {
	if f.zero == "omit" {
		return
	}
	p.lead(indent)
	p.out = append(append(p.out, f.name...), ':')
	p.line("0 # " + f.zero)
}

// item writes a list item. It uses the text cached in the item if there is one.
func (p *printer) item(pl *plan, v reflect.Value, indent int) error {
	var memory *TextCache
	if pl.shown != nil && !p.inline {
		memory = v.FieldByIndex(pl.shown).Interface().(*TextCache)
	}
	if memory != nil {
		if t := memory.text.Load(); t != nil && t.indent == indent && slices.Equal(t.masked, p.masked) {
			p.out = append(p.out, t.text...)
			return nil
		}
	}
	from := len(p.out)
	p.lead(indent)
	p.out = append(p.out, '-')
	shown, err := p.value(pl, v, afterDash, indent)
	if !shown {
		p.line("{}")
	}
	if memory != nil && err == nil {
		memory.text.Store(&shownText{indent, p.masked, bytes.Clone(p.out[from:])})
	}
	return err
}

// open begins a collection and returns its indentation.
func (p *printer) open(at position, indent int) int {
	switch at {
	case top:
		return indent
	case afterKey:
		p.out = append(p.out, '\n')
	case afterDash:
		p.out, p.inline = append(p.out, ' '), true
	}
	return indent + step
}

// lead writes the indentation of an entry.
func (p *printer) lead(indent int) {
	for ; indent > 0 && !p.inline; indent-- {
		p.out = append(p.out, ' ')
	}
	p.inline = false
}

// line writes text that needs no quotes, and ends the line.
func (p *printer) line(text string) { p.out = append(append(append(p.out, ' '), text...), '\n') }

// entry writes a key of a mapping with its value. If the value is empty, it writes nothing.
func (p *printer) entry(name string, pl *plan, v reflect.Value, indent int) error {
	before, inline, at := len(p.out), p.inline, afterKey
	p.lead(indent)
	if plain(name) && len(name) < longKey {
		p.out = append(append(p.out, name...), ':')
	} else {
		key := new(yaml.Node)
		key.SetString(name)
		text, err := encoded(indent, yaml.MappingNode, key, &yaml.Node{Kind: yaml.MappingNode})
		if err != nil {
			return err
		}
		if p.out = append(p.out, bytes.TrimSuffix(text, []byte(" {}\n"))...); bytes.HasPrefix(text, []byte("? ")) {
			at = afterDash
		}
	}
	behind, masked := len(p.out), slices.Contains(p.masked, name)
	if masked && pl.form == formText && !v.IsZero() { // avoids the library, which allocates 500 bytes for each of up to 100,000 digests
		p.line("'" + Masked + "'")
		return nil
	}
	shown, err := p.value(pl, v, at, indent)
	switch {
	case !shown:
		p.out, p.inline = p.out[:before], inline
	case masked:
		p.out = p.out[:behind]
		p.line("'" + Masked + "'")
	}
	return err
}

// text writes a string.
func (p *printer) text(text string, at position, indent int) error {
	if plain(text) {
		p.line(text)
		return nil
	}
	n := new(yaml.Node)
	if err := n.Encode(text); err != nil {
		return err
	}
	bare(n)
	return p.tree(n, at, indent)
}

// tree writes a value with the YAML library.
func (p *printer) tree(n *yaml.Node, at position, indent int) error {
	kind, nodes := yaml.SequenceNode, []*yaml.Node{n}
	if at == afterKey {
		kind, nodes = yaml.MappingNode, []*yaml.Node{{Kind: yaml.ScalarNode, Value: "k"}, n}
	}
	text, err := encoded(indent, kind, nodes...)
	if err == nil {
		p.out = append(p.out, text[len(nodes):]...) // after "k:" or "-"
	}
	return err
}

// encoded returns a collection in the form in which the library writes it at an indentation. The first line is not indented.
func encoded(indent int, kind yaml.Kind, nodes ...*yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(step)
	if err := e.Encode(&yaml.Node{Kind: kind, Content: nodes}); err != nil {
		return nil, err
	}
	return furtherLine.ReplaceAll(out.Bytes(), append([]byte("\n"), append(bytes.Repeat([]byte(" "), indent), "$1"...)...)), nil
}

// furtherLine matches the beginning of every non-empty line except the first.
var furtherLine = regexp.MustCompile(`\n([^\n])`)

// longKey is the minimum length of keys that the library may write on a separate line.
const longKey = 100

// plain reports whether text certainly needs no quotes: it begins with a letter, is not a reserved word, and contains neither special
// characters of YAML nor the user information of a URL.
func plain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i == 0:
			return false
		case '0' <= c && c <= '9', c == '_', c == '-', c == '.', c == '/':
		case i == len(text)-1:
			return false
		case c == ' ' || c == ':' && text[i+1] != ' ':
		default:
			return false
		}
	}
	return text != "" && (len(text) > len("false") || !slices.Contains(words, strings.ToLower(text)))
}

// words lists the strings that some YAML parsers read as another type.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// scalar returns the tree of a value that is not a struct, list or map.
func scalar(pl *plan, v reflect.Value) (*yaml.Node, error) {
	n := new(yaml.Node)
	switch pl.form { //nolint:exhaustive // all others are encoded by the library
	case formDuration:
		n.SetString(shortDuration(time.Duration(v.Int())))
		return n, nil
	case formText, formDecimal:
		if v.IsZero() {
			return nil, nil //nolint:nilnil // empty
		}
		text := fmt.Sprint(v)
		if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
			written, err := m.MarshalText()
			if err != nil {
				return nil, err
			}
			text = string(written)
		}
		if n.SetString(text); pl.form == formDecimal {
			n.Tag = "" // written as a number
		}
		return n, nil
	case formString, formSecret:
		if v.IsZero() {
			return nil, nil //nolint:nilnil // empty
		}
	}
	if err := n.Encode(v.Interface()); err != nil {
		return nil, err
	}
	bare(n)
	return n, nil
}

// userinfo matches the part of a URL up to its host.
var userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/?#\s]*@`)

// bare masks the user information of URLs in a node.
func bare(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Value = userinfo.ReplaceAllString(n.Value, "${1}"+Masked+"@")
	}
	for _, part := range n.Content {
		bare(part)
	}
}
