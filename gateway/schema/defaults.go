package schema

import (
	"fmt"
	"maps"
	"slices"
)

// defaultTree holds the default values of the members of an object, including nested objects.
type defaultTree struct {
	values   map[string]any          // by member
	children map[string]*defaultTree // by member; also for the elements of arrays
}

// FillDefaults returns a copy of doc, the body of a request that creates a resource, in which omitted members have the platform's default
// values. Policies evaluate the copy; it is not sent to the platform. For all other operations, FillDefaults returns doc itself, because
// members that an update omits keep their values. It does not modify doc, but the result may share parts with doc.
//
// FillDefaults does not set members whose values the platform would take from a template (startSsh and startJupyter of a pod with
// templateId) or that the platform would reject (workers.idleTimeout of a QUEUE endpoint that scales by REQUEST_COUNT). If a template is
// merged into doc, call FillDefaults afterwards.
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

// WithoutRefusedDefault returns a copy of doc, the body of a request that creates a resource, without default values that generated clients
// send but the platform would reject. These are workers.idleTimeout of an endpoint that must not have an idle timeout, and empty mounts of
// an endpoint, which released clients send together with networkVolumes. It does not modify doc.
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

// noneIn reports whether all values in lists are empty lists.
func noneIn(lists map[string]any) bool {
	for _, v := range lists {
		if list, ok := v.([]any); !ok || len(list) > 0 {
			return false
		}
	}
	return true
}

// fill returns a copy of an object in which omitted members, also in nested objects, have their default values.
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
