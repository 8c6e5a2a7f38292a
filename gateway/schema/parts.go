package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// part identifies a part of an operation; see the fields In and Name of [Change].
type part struct{ in, name string }

// parts maps each part of an operation to the set of its constraints, as text.
type parts map[part]map[string]bool

func (p parts) add(at part, constraint string) {
	if p[at] == nil {
		p[at] = make(map[string]bool)
	}
	if constraint != "" {
		p[at][constraint] = true
	}
}

// members adds a part, with the constraints in the members of its node that are not in a schema.
func (p parts) members(at part, node map[string]any) {
	p.add(at, "")
	for _, name := range []string{"required", "deprecated"} {
		if node[name] == true {
			p.add(at, name)
		}
	}
	for _, name := range []string{"style", "explode", "security"} {
		if v, given := node[name]; given {
			p.add(at, name+" "+compact(v))
		}
	}
}

// partsOf returns the parts of an operation.
func (o *outline) partsOf(op *outlined) parts {
	all := make(parts)
	all.members(part{InOperation, ""}, op.node)
	if security := o.at("/security"); op.node["security"] == nil && security != nil {
		all.members(part{InOperation, ""}, map[string]any{"security": security})
	}
	for _, item := range slices.Concat(op.shared, list(op.node, "parameters")) {
		p := o.follow(item)
		if in := text(p, "in"); in == InQuery || in == InHeader {
			at := part{in, text(p, "name")}
			all.members(at, p)
			o.walk(all, at, p["schema"], nil)
		}
	}
	if body := o.follow(op.node["requestBody"]); body != nil {
		all.members(part{InBody, ""}, body)
		o.content(all, part{InBody, ""}, body)
	}
	for status, item := range object(op.node, "responses") {
		all.add(part{InStatus, status}, "")
		response, in := o.follow(item), InError
		if strings.HasPrefix(status, "2") {
			in = InResponse
			for name := range object(response, "headers") {
				all.add(part{InResponseHeader, name}, "")
			}
		}
		o.content(all, part{in, ""}, response)
	}
	return all
}

// content adds the media types and the schema of a body.
func (o *outline) content(all parts, at part, body map[string]any) {
	for media := range object(body, "content") {
		all.add(at, "media type "+media)
	}
	o.walk(all, at, schemaOf(body), nil)
}

// schemaOf returns the schema of a body, preferably for JSON content. It returns nil if the body has no content.
func schemaOf(body map[string]any) any {
	content := object(body, "content")
	media := object(content, "application/json")
	for _, name := range slices.Sorted(maps.Keys(content)) {
		if media == nil {
			media = object(content, name)
		}
	}
	return media["schema"]
}

// maxVisits is the maximum number of schemas that are read from one description. A schema counts each time a reference leads to it.
const maxVisits = 1 << 20

// walk adds the constraints of a schema and of its members. refs are the references that led to the schema.
func (o *outline) walk(all parts, at part, schema any, refs []string) {
	node, _ := schema.(map[string]any)
	if o.visits++; o.visits > maxVisits {
		o.err = fmt.Errorf("API description has more than %d schemas after references are resolved", maxVisits)
		return
	}
	if ref := text(node, "$ref"); ref != "" && !slices.Contains(refs, ref) {
		o.walk(all, at, o.at(strings.TrimPrefix(ref, "#")), append(slices.Clip(refs), ref))
	}
	for _, keyword := range slices.Sorted(maps.Keys(node)) {
		o.keyword(all, at, keyword, node[keyword], refs)
	}
}

// keyword adds the constraints of one keyword of a schema.
func (o *outline) keyword(all parts, at part, keyword string, value any, refs []string) {
	inside := func(name string) part { return part{at.in, strings.TrimPrefix(at.name+name, ".")} }
	switch keyword {
	case "$ref", "description", "title", "example", "examples", "discriminator", "externalDocs", "xml":
	case "allOf", "anyOf", "oneOf":
		items, _ := value.([]any)
		for _, item := range items {
			o.walk(all, at, item, refs)
		}
	case "properties":
		members, _ := value.(map[string]any)
		for name, member := range members {
			all.add(inside("."+name), "")
			o.walk(all, inside("."+name), member, refs)
		}
	case "required":
		names, _ := value.([]any)
		for _, name := range words(names) {
			all.add(inside("."+name), keyword)
		}
	case "items":
		o.walk(all, inside("[]"), value, refs)
	case "additionalProperties", "unevaluatedProperties":
		if value == false {
			all.add(at, "no other members")
		}
		o.walk(all, inside(".*"), value, refs)
	case "type", "enum":
		values, isList := value.([]any)
		if !isList {
			values = []any{value}
		}
		for _, v := range values {
			all.add(at, keyword+" "+compact(v))
		}
	default:
		if !strings.HasPrefix(keyword, "x-") {
			all.add(at, keyword+" "+compact(value))
		}
	}
}

// compact formats the value of a constraint. Strings are unquoted.
func compact(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // the value was decoded from JSON
	return strings.TrimSpace(out.String())
}

// changes returns the changes from p to newer. It omits changes inside a part that is itself new or gone.
func (p parts) changes(newer parts) []Change {
	all := make(parts)
	maps.Copy(all, p)
	maps.Copy(all, newer)
	var out []Change
	for _, at := range slices.SortedFunc(maps.Keys(all), func(a, b part) int { return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.name, b.name)) }) {
		c := Change{What: Changed, In: at.in, Name: at.name, Older: only(p[at], newer[at]), Newer: only(newer[at], p[at])}
		was, is := p[at] != nil, newer[at] != nil
		switch {
		case was && is && c.Older == c.Newer, at.inside(out):
			continue
		case !was:
			c.What = New
		case !is && at.in == InStatus && at.name > "3" && newer[part{InStatus, "default"}] != nil:
			continue
		case !is:
			c.What = Gone
		}
		out = append(out, c)
	}
	return out
}

// inside reports whether a part is inside a part that is new or gone.
func (at part) inside(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool {
		rest, ok := strings.CutPrefix(at.name, c.Name)
		return ok && c.In == at.in && c.What != Changed && rest != "" && (rest[0] == '.' || rest[0] == '[')
	})
}

// only lists the constraints that others does not contain.
func only(constraints, others map[string]bool) string {
	return strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(constraints)), func(c string) bool { return others[c] }), ", ")
}
