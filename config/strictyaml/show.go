package strictyaml

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Masked stands for a value that is not shown.
const Masked = "[masked]"

// Show writes the configuration struct v, or a pointer to one, as a file would say it, with its defaults and without empty values. Secrets
// show their references. The values of masked keys, and the user info of URLs, are not shown.
func Show(v any, masked ...string) ([]byte, error) {
	value := reflect.ValueOf(v)
	root, err := shower(masked).node(planOf(value.Type()), value)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	err = e.Encode(root)
	return out.Bytes(), err
}

// shower is the names of keys whose values are not shown.
type shower []string

// node returns a value as a tree, nil for an empty one.
func (s shower) node(pl *plan, v reflect.Value) (*yaml.Node, error) {
	switch pl.form { //nolint:exhaustive // the others are scalars
	case formPointer:
		if v.IsNil() {
			return nil, nil //nolint:nilnil // it is empty
		}
		return s.node(pl.elem, v.Elem())
	case formStruct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range pl.fields {
			if err := s.add(n, f.name, f.plan, v.FieldByIndex(f.index)); err != nil {
				return nil, err
			}
		}
		return full(n), nil
	case formMap:
		n := &yaml.Node{Kind: yaml.MappingNode}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			if err := s.add(n, fmt.Sprint(key), pl.elem, v.MapIndex(key)); err != nil {
				return nil, err
			}
		}
		return full(n), nil
	case formList:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			item, err := s.node(pl.elem, v.Index(i))
			if err != nil {
				return nil, err
			}
			if item == nil {
				item = &yaml.Node{Kind: yaml.MappingNode}
			}
			n.Content = append(n.Content, item)
		}
		return full(n), nil
	}
	return scalar(pl, v)
}

// add adds a key to a mapping unless its value is empty.
func (s shower) add(n *yaml.Node, name string, pl *plan, v reflect.Value) error {
	value, err := s.node(pl, v)
	if value == nil || err != nil {
		return err
	}
	if slices.Contains(s, name) {
		value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: Masked}
	}
	key := new(yaml.Node)
	key.SetString(name)
	n.Content = append(n.Content, key, value)
	return nil
}

// full returns a collection, nil for an empty one.
func full(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		return nil
	}
	return n
}

// scalar returns the tree of a value that is no struct, list or map.
func scalar(pl *plan, v reflect.Value) (*yaml.Node, error) {
	n := new(yaml.Node)
	switch pl.form { //nolint:exhaustive // the others are as the library writes them
	case formDuration:
		n.SetString(shortDuration(time.Duration(v.Int())))
		return n, nil
	case formText:
		if v.IsZero() {
			return nil, nil //nolint:nilnil // it is empty
		}
		text := fmt.Sprint(v)
		if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
			written, err := m.MarshalText()
			if err != nil {
				return nil, err
			}
			text = string(written)
		}
		if n.SetString(text); !pl.text {
			n.Tag = "" // a number
		}
		return n, nil
	case formString, formSecret:
		if v.IsZero() {
			return nil, nil //nolint:nilnil // it is empty
		}
	}
	if err := n.Encode(v.Interface()); err != nil {
		return nil, err
	}
	bare(n)
	return n, nil
}

// userinfo is the part of a URL before its host.
var userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/?#\s]*@`)

// bare masks the user info of URLs.
func bare(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Value = userinfo.ReplaceAllString(n.Value, "${1}"+Masked+"@")
	}
	for _, part := range n.Content {
		bare(part)
	}
}
