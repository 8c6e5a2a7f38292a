package admin

import (
	"cmp"
	"encoding"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// call describes a route in the OpenAPI document.
type call struct {
	// handle writes the whole answer of a route that has no function that returns it.
	handle  http.HandlerFunc
	summary string
	query   []param
	// body is the content of the request, a zero value of its type; nil for none.
	body any
	// answer is a zero value of what success answers as JSON; nil where media says what
	// else it is, and for a 204 without media.
	answer any
	status int // of success; 0 is 200
	media  string
	// fails are the statuses beside those that every guarded route has.
	fails []int
}

// param is one of a query.
type param struct {
	name, doc string
	required  bool
	many      bool
}

// Parameters that several routes have.
var ( //nolint:gochecknoglobals // read only
	paramOrg    = param{name: "org", doc: "id of an organisation", required: true}
	paramAnyOrg = param{name: "org", doc: "id of an organisation; absent is all"}
	paramKey    = param{name: "id", doc: "id of a key", required: true}
	paramID     = param{name: "id", doc: "id of a resource", required: true}
	paramAnswer = []param{
		paramOrg,
		{name: "id", doc: "id of the request for approval", required: true},
		{name: "by", doc: "who answers, at most 100 bytes; required with the shared token, and otherwise the name of the admin"},
		{name: "reason", doc: "why, at most 500 bytes"},
		{name: "for", doc: "how long a grant can be used, such as 1h, which is the default; at most 168h"},
		{name: "max_usd", doc: "what the call may cost, per hour or run; absent is what it cost when it was refused"},
	}
	paramDecisions = []param{
		paramAnyOrg,
		{name: "team", doc: "keeps those of a team"},
		{name: "key", doc: "keeps those of a key"},
		{name: "refused", doc: "true keeps what was refused"},
		{name: "own", doc: "true keeps what the gateway did by itself"},
		{name: "since", doc: "keeps what is later than an RFC 3339 time"},
		{name: "limit", doc: "how many at most, from 1 to 1000; absent is 50"},
	}
	paramCosts = []param{
		paramOrg,
		{name: "from", doc: "first hour, a date or an RFC 3339 time; absent is 30 days before the end"},
		{name: "to", doc: "end of the last hour, likewise; absent is the end of today"},
		{name: "bucket", doc: "hour, day, month or total; absent is day"},
	}
)

// costQuery lists the parameters of a question about costs.
func costQuery(by bool) []param {
	out := slices.Clone(paramCosts)
	if by {
		out = append(out, param{name: "by", doc: "what to group by: " + strings.Join(dimensions, ", ") + ", label:NAME", many: true})
	}
	for _, d := range dimensions {
		out = append(out, param{name: d, doc: "keeps what has one of the values", many: true})
	}
	out = append(out, param{name: "label", doc: "name=value keeps what has the label; name= what has none of the name", many: true})
	return out
}

// problem is every refusal of this listener.
type problem struct {
	Error string `json:"error"`
}

// probed is what a probe answers.
type probed struct {
	Status   string `json:"status"`
	Revision string `json:"revision,omitempty"`
}

// object is one of JSON.
type object = map[string]any

// document describes routes as OpenAPI 3.1 does.
func document(routes []route) object {
	s := shapes{schemas: make(object), names: make(map[reflect.Type]string)}
	paths := make(object)
	for _, r := range routes {
		method, path, _ := strings.Cut(r.pattern, " ")
		if paths[path] == nil {
			paths[path] = make(object)
		}
		paths[path].(object)[strings.ToLower(method)] = s.operation(&r, path)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "tollgate, the operators' listener", "version": "1",
			"description": "Amounts are USD as decimal strings, unless said otherwise. Changes are logged, and audited where an audit log is configured.",
		},
		"paths": paths,
		"components": object{
			"schemas":         s.schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "the token of one of admin.admins of the configuration, or of an issuer of admin.issuers, which needs the role named, or admin.token, which has all; without any, the listener is on loopback and requires none"}},
		},
	}
}

func (s *shapes) operation(r *route, path string) object {
	var params []object
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			params = append(params, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	for _, p := range r.query {
		schema := object{"type": "string"}
		if p.many {
			schema = object{"type": "array", "items": schema}
		}
		params = append(params, object{"name": p.name, "in": "query", "required": p.required, "description": p.doc, "schema": schema})
	}
	fails := slices.Clone(r.fails)
	if r.role != anyone {
		fails = append(fails, http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	}
	if r.changes {
		fails = append(fails, http.StatusServiceUnavailable)
	}
	responses := make(object)
	for _, status := range fails {
		answer := any(problem{})
		if r.role == anyone {
			answer = probed{}
		}
		responses[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": s.json(answer)}
	}
	switch {
	case r.answer != nil:
		status := cmp.Or(r.status, http.StatusOK)
		responses[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": s.json(r.answer)}
	case r.media != "":
		responses["200"] = object{"description": "OK", "content": object{r.media: object{}}}
	default:
		responses["204"] = object{"description": "No Content"}
	}
	op := object{"summary": r.summary, "responses": responses}
	if params != nil {
		op["parameters"] = params
	}
	if r.body != nil {
		op["requestBody"] = object{"required": true, "content": s.json(r.body)}
	}
	if r.role != anyone {
		op["security"] = []object{{"token": []Role{r.role}}}
	}
	return op
}

// shapes collects the schemas of types.
type shapes struct {
	schemas object
	names   map[reflect.Type]string
}

func (s *shapes) json(zero any) object {
	if l, ok := zero.(list); ok {
		properties := object{l.name: object{"type": "array", "items": s.of(reflect.TypeOf(l.item))}}
		for _, name := range l.beside {
			properties[name] = object{"type": "string"}
		}
		return object{"application/json": object{"schema": object{"type": "object", "properties": properties, "required": []string{l.name}, "additionalProperties": false}}}
	}
	return object{"application/json": object{"schema": s.of(reflect.TypeOf(zero))}}
}

// list is an object that holds a list of such items under a name, and may hold other
// strings beside it.
type list struct {
	name   string
	item   any
	beside []string
}

// of returns the schema of what package json makes of a type.
func (s *shapes) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.Number]():
		return object{"type": "number"}
	case t.Kind() == reflect.Interface, t.Implements(reflect.TypeFor[json.Marshaler]()):
		return object{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() { //nolint:exhaustive // json has no form of the others
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Pointer:
		return object{"anyOf": []object{s.of(t.Elem()), {"type": "null"}}}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.named(t)
	}
	panic("admin: no schema of " + t.String())
}

// named refers to the schema of a struct, which has the name of its type.
func (s *shapes) named(t reflect.Type) object {
	name := s.names[t]
	if t.Name() == "" {
		return s.structure(t)
	}
	if name == "" {
		name = t.String()
		s.names[t] = name
		s.schemas[name] = s.structure(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (s *shapes) structure(t reflect.Type) object {
	properties, required := make(object), []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		name = cmp.Or(name, f.Name)
		properties[name] = s.of(f.Type)
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// openAPI answers with the document.
func (d Deps) openAPI(*http.Request) (any, error) {
	return document(d.routes()), nil
}
