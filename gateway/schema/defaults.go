package schema

import (
	"fmt"
	"maps"
	"slices"
)

// defaultTree holds the defaults of one object of the description and of the
// objects inside it.
type defaultTree struct {
	values   map[string]any          // by member
	children map[string]*defaultTree // by member; elements of arrays alike
}

// FillDefaults returns a copy of a create request with the platform's defaults
// in the members that were left out: what the request amounts to, for policies
// to judge. It is not what is sent. For every other operation it returns doc
// itself, because there a member left out keeps its old value.
//
// A default is not filled in where the platform would take the value from a
// template (startSsh and startJupyter of a pod beside templateId), nor where the
// member would be refused (workers.idleTimeout of a QUEUE endpoint that scales
// by REQUEST_COUNT). Call FillDefaults after a template has been merged.
func (op *Operation) FillDefaults(doc any) any {
	if op.defaults == nil {
		return doc
	}
	doc = clone(doc)
	body, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	_, template := body["templateId"]
	_, ssh := body["startSsh"]
	_, jupyter := body["startJupyter"]
	workers, _ := body["workers"].(map[string]any)
	_, idle := workers["idleTimeout"]

	op.defaults.fill(body)

	if template && !ssh {
		delete(body, "startSsh")
	}
	if template && !jupyter {
		delete(body, "startJupyter")
	}
	if workers, ok := body["workers"].(map[string]any); ok && !idle && idleTimeoutRefused(body) {
		delete(workers, "idleTimeout")
	}
	return doc
}

func (t *defaultTree) fill(object map[string]any) {
	for name, value := range t.values {
		if _, ok := object[name]; !ok {
			object[name] = clone(value)
		}
	}
	for name, child := range t.children {
		switch value := object[name].(type) {
		case map[string]any:
			child.fill(value)
		case []any:
			for _, item := range value {
				if m, ok := item.(map[string]any); ok {
					child.fill(m)
				}
			}
		}
	}
}

// defaultsOf collects the defaults of the schema at pointer; nil when there are
// none.
func (s *source) defaultsOf(pointer string) *defaultTree {
	t := &defaultTree{values: make(map[string]any), children: make(map[string]*defaultTree)}
	s.inPlace(pointer, func(at string, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			p, _ := property.(map[string]any)
			if value, ok := p["default"]; ok {
				t.values[name] = value
			}
			inner := fmt.Sprintf("%s/properties/%s", at, name)
			if _, ok := p["items"]; ok {
				inner += "/items"
			}
			if child := s.defaultsOf(inner); child != nil {
				t.children[name] = child
			}
		}
	})
	if len(t.values) == 0 && len(t.children) == 0 {
		return nil
	}
	return t
}

// clone copies a decoded JSON value in depth.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := maps.Clone(v)
		for name, item := range m {
			m[name] = clone(item)
		}
		return m
	case []any:
		items := slices.Clone(v)
		for i, item := range items {
			items[i] = clone(item)
		}
		return items
	}
	return v
}
