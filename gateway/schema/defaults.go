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

// FillDefaults returns a create request with the platform's defaults in the members that
// were left out: the whole request, for policies to judge. It is not sent. For every other
// operation it returns doc itself, because there a member left out keeps its old value. It
// does not change doc; equal parts of both may be shared.
//
// A default is not filled in where the platform would take the value from a
// template (startSsh and startJupyter of a pod beside templateId), nor where the
// member would be refused (workers.idleTimeout of a QUEUE endpoint that scales
// by REQUEST_COUNT). Call FillDefaults after a template has been merged.
func (op *Operation) FillDefaults(doc any) any {
	if op.defaults == nil {
		return doc
	}
	given, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	if op.defaults.children["workers"] != nil && !has(given, "workers") {
		given = maps.Clone(given)
		given["workers"] = map[string]any{} // its defaults hold without it, too
	}
	body := op.defaults.fill(given)
	if has(given, "templateId") {
		for _, flag := range []string{"startSsh", "startJupyter"} {
			if !has(given, flag) {
				delete(body, flag)
			}
		}
	}
	if workers := object(body, "workers"); workers != nil && !has(object(given, "workers"), "idleTimeout") && idleTimeoutRefused(body) {
		delete(workers, "idleTimeout")
	}
	return body
}

// WithoutRefusedDefault returns a create request without the default of workers.idleTimeout, if the endpoint is of the one combination that
// may not set it: generated clients send every default. It returns a new endpoint without mounts if these are empty, which released clients
// send beside networkVolumes. It does not change doc.
func (op *Operation) WithoutRefusedDefault(doc any) any {
	body, _ := doc.(map[string]any)
	if mounts, given := body["mounts"].(map[string]any); given && op.ID == "createEndpoint" && noneIn(mounts) {
		body = maps.Clone(body)
		delete(body, "mounts")
		doc = body
	}
	workers := object(body, "workers")
	if op.defaults == nil || op.defaults.children["workers"] == nil || !idleTimeoutRefused(body) || workers["idleTimeout"] != op.defaults.children["workers"].values["idleTimeout"] {
		return doc
	}
	body, workers = maps.Clone(body), maps.Clone(workers)
	delete(workers, "idleTimeout")
	body["workers"] = workers
	return body
}

// noneIn reports whether all members of an object are empty lists.
func noneIn(lists map[string]any) bool {
	for _, v := range lists {
		if list, ok := v.([]any); !ok || len(list) > 0 {
			return false
		}
	}
	return true
}

// fill returns a copy of an object, and of those inside it that have defaults, with
// the defaults.
func (t *defaultTree) fill(object map[string]any) map[string]any {
	out := maps.Clone(object)
	for name, value := range t.values {
		if _, ok := out[name]; !ok {
			out[name] = value
		}
	}
	for name, child := range t.children {
		switch value := out[name].(type) {
		case map[string]any:
			out[name] = child.fill(value)
		case []any:
			items := slices.Clone(value)
			for i, item := range items {
				if m, ok := item.(map[string]any); ok {
					items[i] = child.fill(m)
				}
			}
			out[name] = items
		}
	}
	return out
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
