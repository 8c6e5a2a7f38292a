package main

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// toYAML converts JSON to YAML. Members keep their order. toYAML quotes strings that a YAML 1.1 parser would otherwise read as another
// type.
func toYAML(text []byte) ([]byte, error) {
	root, err := yamlNode(jsontext.NewDecoder(bytes.NewReader(text)))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	err = e.Encode(root)
	return b.Bytes(), err
}

// yamlNode reads the next JSON value and returns it as a YAML node.
func yamlNode(d *jsontext.Decoder) (*yaml.Node, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}
	switch token.Kind() { //nolint:exhaustive // all others are written unchanged
	case jsontext.KindString:
		return n, n.Encode(n.Value) // with quotes where necessary
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		*n = yaml.Node{Kind: yaml.MappingNode}
		if token.Kind() == jsontext.KindBeginArray {
			n.Kind = yaml.SequenceNode
		}
		for k := d.PeekKind(); k != jsontext.KindEndObject && k != jsontext.KindEndArray; k = d.PeekKind() {
			below, err := yamlNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, below)
		}
		_, err = d.ReadToken()
	}
	return n, err
}
