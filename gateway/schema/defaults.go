package schema

import (
	"fmt"
	"maps"
	"slices"
)

// defaultTree holds the default values of an object schema and of the objects in it.
type defaultTree struct {
	values   map[string]any          // by member
	children map[string]*defaultTree // by member; also for the elements of arrays
}

// FillDefaults returns a create request with the platform's defaults for omitted members, so that policies see the
// complete request. The result is not sent to the platform. For every other operation it returns doc itself, because an
// omitted member of an update keeps its value. It does not modify doc; the result may share parts with it.
//
// It omits a default if the platform would take the value from a template (startSsh and startJupyter of a pod with
// templateId), or if the platform would reject the member (workers.idleTimeout of a QUEUE endpoint that scales by
// REQUEST_COUNT). Call FillDefaults after a template has been merged.
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
		given["workers"] = map[string]any{} // its defaults also apply if it is absent
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

// WithoutRefusedDefault returns a copy of a create request without default values that generated clients send and the platform would
// reject: workers.idleTimeout of an endpoint that must not set it, and empty mounts of a new endpoint. Released clients send such mounts
// together with networkVolumes. It does not modify doc.
func (op *Operation) WithoutRefusedDefault(doc any) any {
	body, _ := doc.(map[string]any)
	if mounts, given := body["mounts"].(map[string]any); given && op.ID == "createEndpoint" && noneIn(mounts) {
		body = maps.Clone(body)
		delete(body, "mounts")
		doc = body
	}
	workers := object(body, "workers")
	if op.defaults == nil || op.defaults.children["workers"] == nil || !idleTimeoutRefused(body) ||
		workers["idleTimeout"] != op.defaults.children["workers"].values["idleTimeout"] {
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

// fill returns a copy of an object with defaults for omitted members, recursively.
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

// defaultsOf returns the defaults of the schema at pointer, or nil.
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
