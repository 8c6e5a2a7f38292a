package schema

import (
	"encoding/json"
	"fmt"
	"maps"
)

// joined holds the members of an OpenAPI document that join reads or changes.
type joined struct {
	OpenAPI    json.RawMessage                       `json:"openapi"`
	Info       json.RawMessage                       `json:"info"`
	Servers    json.RawMessage                       `json:"servers"`
	Security   json.RawMessage                       `json:"security"`
	Tags       []json.RawMessage                     `json:"tags"`
	Paths      map[string]json.RawMessage            `json:"paths"`
	Components map[string]map[string]json.RawMessage `json:"components"`
}

// join returns the description base with the tags, paths and components of the description other added. It returns an error if both contain
// the same path or component.
func join(base, other []byte) ([]byte, error) {
	var doc, more joined
	if err := json.Unmarshal(base, &doc); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(other, &more); err != nil {
		return nil, err
	}
	doc.Tags = append(doc.Tags, more.Tags...)
	if err := add(doc.Paths, more.Paths); err != nil {
		return nil, err
	}
	for sort, components := range more.Components {
		if err := add(doc.Components[sort], components); err != nil {
			return nil, err
		}
	}
	return json.Marshal(doc)
}

// add copies the entries of from to the map to. It returns an error if an entry already exists.
func add(to, from map[string]json.RawMessage) error {
	for name := range from {
		if _, taken := to[name]; taken {
			return fmt.Errorf("duplicate name %s", name)
		}
	}
	maps.Copy(to, from)
	return nil
}
