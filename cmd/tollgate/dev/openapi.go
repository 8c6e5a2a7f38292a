package dev

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/reference"
)

// openAPI describes the routes of a project.
func openAPI(p *Project) []byte {
	paths := map[string]map[string]any{}
	for _, r := range p.Routes() {
		if paths[r.Path] == nil {
			paths[r.Path] = map[string]any{}
		}
		paths[r.Path][strings.ToLower(r.Method)] = r.operation()
	}
	for path, summary := range map[string]string{"/": "Health of the server", "/ping": "Health of the server"} {
		paths[path] = map[string]any{"get": map[string]any{
			"operationId": "get" + folded(strings.ReplaceAll(path, "/", "_")), "summary": summary, "tags": []string{"health"}, "responses": answers("The server is up", nil),
		}}
	}
	document, err := json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]string{"title": "tollgate dev", "version": "1", "description": "Functions of this directory. Their bodies run on the platform."},
		"servers": []map[string]string{{"url": "/"}},
		"paths":   paths,
	})
	if err != nil {
		panic(err) // schemas are the reader's own
	}
	return document
}

func answers(what string, schema any) map[string]any {
	content := map[string]any{"application/json": map[string]any{"schema": schema}}
	if schema == nil {
		content = map[string]any{"application/json": map[string]any{}}
	}
	return map[string]any{"200": map[string]any{"description": what, "content": content}}
}

// summary is the first line of the docstring, or the name.
func (r *Route) summary() string { return cmp.Or(r.Function.Summary, r.Function.Name) }

// operation describes a route.
func (r *Route) operation() map[string]any {
	f := r.Function
	o := map[string]any{
		"operationId": strings.ToLower(r.Method) + strings.NewReplacer("/", "_", "{", "", "}", "").Replace(r.Path),
		"summary":     r.summary(),
		"tags":        []string{strings.TrimPrefix(r.Endpoint.Prefix, "/")},
		"responses":   answers("What the function returns", nil),
	}
	var inPath, rest []Param
	var parameters []any
	for _, p := range f.Params {
		if strings.Contains(r.Path, "{"+p.Name+"}") {
			inPath = append(inPath, p)
		} else {
			rest = append(rest, p)
		}
	}
	for _, name := range parameter.FindAllStringSubmatch(r.Path, -1) {
		p := Param{Name: name[1], Schema: json.RawMessage("{}")}
		if i := slices.IndexFunc(inPath, func(p Param) bool { return p.Name == name[1] }); i >= 0 {
			p = inPath[i]
		}
		parameters = append(parameters, map[string]any{"name": p.Name, "in": "path", "required": true, "schema": p.Schema})
	}
	switch {
	case !r.Endpoint.balanced():
		r.job(o)
	case r.Method == http.MethodGet:
		for _, p := range rest {
			parameters = append(parameters, map[string]any{"name": p.Name, "in": "query", "required": p.Required, "schema": p.described()})
		}
	case len(rest) > 0 || r.Endpoint.Client:
		o["requestBody"] = body(properties(rest, f.Params == nil))
	}
	if len(parameters) > 0 {
		o["parameters"] = parameters
	}
	return o
}

// job describes the wrapper of a job.
func (r *Route) job(o map[string]any) {
	o["requestBody"] = body(map[string]any{
		"type": "object", "required": []string{"input"},
		"properties": map[string]any{"input": properties(r.Function.Params, r.Function.Params == nil || r.Function.Variadic)},
	})
	o["responses"] = answers("The finished job", map[string]any{
		"type": "object",
		"properties": map[string]any{
			"id": map[string]string{"type": "string"}, "status": map[string]string{"type": "string"}, "output": map[string]any{},
		},
	})
}

func body(schema any) map[string]any {
	return map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": schema}}}
}

// properties is the schema of an object of parameters.
func properties(params []Param, open bool) map[string]any {
	schema := map[string]any{"type": "object"}
	members, required := map[string]any{}, []string{}
	for _, p := range params {
		members[p.Name] = p.described()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	if len(members) > 0 {
		schema["properties"] = members
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	if !open {
		schema["additionalProperties"] = false
	}
	return schema
}

// described is the schema of a parameter with its default.
func (p Param) described() map[string]any {
	schema := map[string]any{}
	_ = json.Unmarshal(p.Schema, &schema) // it is the reader's own
	if len(p.Default) > 0 {
		schema["default"] = p.Default
	}
	return schema
}

// unescape reads a segment of a path. One that would be several is none.
func unescape(segment string) (string, error) {
	value, err := url.PathUnescape(segment)
	if err == nil && strings.ContainsAny(value, "/\x00") {
		err = url.EscapeError(segment)
	}
	return value, err
}

// explorer returns the files of /docs: a page of the server's own around the viewer that
// the gateway has.
func explorer() (map[string]reference.File, error) {
	all, err := reference.Files()
	if err != nil {
		return nil, err
	}
	files := map[string]reference.File{}
	for _, f := range all {
		switch f.Path {
		case reference.Path:
			h := maps.Clone(f.Header)
			files[f.Path] = reference.File{Path: f.Path, Header: h, Body: asset("docs.html")}
		case reference.Path + "/swagger-ui.js", reference.Path + "/swagger-ui.css":
			files[f.Path] = f
		}
	}
	for name, kind := range map[string]string{"dev.js": "text/javascript; charset=utf-8", "dev.css": "text/css; charset=utf-8"} {
		path := reference.Path + "/" + name
		files[path] = reference.File{Path: path, Header: http.Header{"Content-Type": {kind}, "Cache-Control": {"no-cache"}}, Body: asset(name)}
	}
	return files, nil
}

func asset(name string) func() []byte {
	return func() []byte {
		raw, err := page.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		return raw
	}
}
