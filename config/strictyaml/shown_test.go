package strictyaml

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// asLibrary is what Show must write: the whole as a tree, which the library writes. It cannot read some of what it writes, which is its error.
func asLibrary(v any, masked ...string) (shown string, err error) {
	var tree func(pl *plan, v reflect.Value) *yaml.Node
	mapping := func(names []string, of func(i int) *yaml.Node) *yaml.Node {
		n := &yaml.Node{Kind: yaml.MappingNode}
		for i, name := range names {
			value := of(i)
			if value == nil {
				continue
			}
			if slices.Contains(masked, name) {
				value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: Masked}
			}
			key := new(yaml.Node)
			key.SetString(name)
			n.Content = append(n.Content, key, value)
		}
		if n.Content == nil {
			return nil
		}
		return n
	}
	tree = func(pl *plan, v reflect.Value) *yaml.Node {
		switch pl.form { //nolint:exhaustive // the others are scalars
		case formPointer:
			if v.IsNil() {
				return nil
			}
			return tree(pl.elem, v.Elem())
		case formStruct:
			return mapping(pl.names(), func(i int) *yaml.Node { return tree(pl.fields[i].plan, v.FieldByIndex(pl.fields[i].index)) })
		case formMap:
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			names := make([]string, len(keys))
			for i, key := range keys {
				names[i] = fmt.Sprint(key)
			}
			return mapping(names, func(i int) *yaml.Node { return tree(pl.elem, v.MapIndex(keys[i])) })
		case formList:
			n := &yaml.Node{Kind: yaml.SequenceNode}
			for i := range v.Len() {
				item := tree(pl.elem, v.Index(i))
				if item == nil {
					item = &yaml.Node{Kind: yaml.MappingNode}
				}
				n.Content = append(n.Content, item)
			}
			if n.Content == nil {
				return nil
			}
			return n
		}
		n, failed := scalar(pl, v)
		err = errors.Join(err, failed)
		return n
	}
	value := reflect.ValueOf(v)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err = errors.Join(err, e.Encode(tree(planOf(value.Type()), value)))
	return out.String(), err
}

// amount is written as a number.
type amount string

// UnmarshalNumber implements NumberUnmarshaler.
func (a *amount) UnmarshalNumber(text string) error { *a = amount(text); return nil }

// word reads itself from text.
type word string

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *word) UnmarshalText(text []byte) error { *w = word(text); return nil }

var _ encoding.TextUnmarshaler = (*word)(nil)

// everything has a value of every form, in every place.
type everything struct {
	Text    string                         `yaml:"text"`
	Any     any                            `yaml:"any"`
	Anys    map[string]any                 `yaml:"anys"`
	Texts   []string                       `yaml:"texts"`
	Deep    [][]string                     `yaml:"deep"`
	Map     map[string]string              `yaml:"map"`
	Maps    map[string]map[string][]string `yaml:"maps"`
	Parts   []everything                   `yaml:"parts"`
	Part    *everything                    `yaml:"part"`
	Secret  Secret                         `yaml:"secret"`
	Secrets []Secret                       `yaml:"secrets"`
	Hidden  string                         `yaml:"hidden"`
	Hiddens []string                       `yaml:"hiddens"`
	Bool    bool                           `yaml:"bool"`
	Int     int                            `yaml:"int"`
	Uint    uint8                          `yaml:"uint"`
	Float   float64                        `yaml:"float"`
	Time    time.Duration                  `yaml:"time"`
	Times   []time.Duration                `yaml:"times"`
	Amount  amount                         `yaml:"amount"`
	Word    word                           `yaml:"word"`
	None    struct{}                       `yaml:"none"`
}

// FuzzShow compares what is shown with what the library writes of the same tree, byte by byte.
func FuzzShow(f *testing.F) {
	for _, text := range []string{
		"", "a", "NVIDIA L4", "true", "Yes", "nUll", "a: b", "a:b", "a :b", "a #b", "x:", " x", "x ", "~", "1", "0x1", "1e3", "1m30s", "2026-11-27", "-", "- a", "?", "? a", "?a",
		"http://ann:pw@proxy.example:80/x", "https://a.example/x", "a\nb", "a\n", "\na", "a\n\n", " a\n  b\n", "\ta", "a\tb", "#", "'", "\"", "[a]", "{a}", "*a", "&a", "!a", "|", ">", "%a", "@", "`",
		"é", "日本", "\x00", "\xff", "\u2028", "...", "---", "<<", "=", ".inf", strings.Repeat("long ", 40), strings.Repeat("x", 127), strings.Repeat("x", 129), "a  b", "a\r\nb", "a\n \nb\n", "N", "of", "on",
	} {
		f.Add(text, text, int64(90_000_000_000), 0.5)
		f.Add("key", text, int64(len(text)), float64(len(text))*1e20)
		f.Add(text, "value", int64(-1500), -1e-7)
	}
	f.Fuzz(func(t *testing.T, name, text string, n int64, x float64) {
		inner := everything{
			Text: text, Any: text, Anys: map[string]any{name: []any{text, n, x, nil, []any{}, []any{[]any{text}}, map[string]any{name: text}, true}, "b": map[string]any{}, "c": nil, "": text},
			Texts: []string{text, "", name}, Deep: [][]string{{text, name}, {}, {text}}, Map: map[string]string{name: text, "other": name, "none": ""},
			Maps:   map[string]map[string][]string{name: {name: {text}, "a": {}}, "empty": {}, "b": {"c": {text, text}}},
			Secret: Secret{env: name}, Secrets: []Secret{{file: text}, NewSecret(text), {}}, Hidden: text, Hiddens: []string{text},
			Bool: n%2 == 0, Int: int(n), Uint: uint8(n), Float: x, Time: time.Duration(n), Times: []time.Duration{time.Duration(n), time.Second}, Amount: amount(fmt.Sprint(n)), Word: word(text),
		}
		whole := everything{Parts: []everything{inner, {}, {Texts: []string{text}}, {Map: map[string]string{name: text}}}, Part: &inner, Any: n, Anys: map[string]any{"last": text}}
		for _, v := range []any{inner, &whole, struct{}{}} {
			want, failed := asLibrary(v, "hidden", "hiddens")
			got, err := Show(v, "hidden", "hiddens")
			if failed == nil && (err != nil || string(got) != want) {
				t.Fatalf("%v, shown\n%s\nwant\n%s", err, got, want)
			}
		}
	})
}
