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

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// object is a JSON object.
type object = map[string]any

// document returns the OpenAPI 3.1 description of endpoints.
func document(rows []adminapi.Endpoint) object {
	s := shapes{schemas: make(object), names: make(map[reflect.Type]string)}
	paths := make(object)
	for _, r := range rows {
		path := r.Path()
		if paths[path] == nil {
			paths[path] = make(object)
		}
		paths[path].(object)[strings.ToLower(r.Method())] = s.operation(&r)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "tollgate admin API", "version": "1",
			"description": "Amounts are USD as decimal strings, unless stated otherwise. Changes are logged, and audited if an audit log is configured.",
		},
		"paths": paths,
		"components": object{
			"schemas": s.schemas,
			"securitySchemes": object{"token": object{
				"type": "http", "scheme": "bearer",
				"description": "A token with the required role from admin.admins or from an issuer in admin.issuers, or admin.token, which has all roles. If no token is configured, the listener accepts only loopback connections and does not require a token",
			}},
		},
	}
}

func (s *shapes) operation(r *adminapi.Endpoint) object {
	params := make([]object, 0, len(r.Parameters()))
	for _, p := range r.Parameters() {
		place, schema := "query", schemaOf(&p)
		if strings.Contains(r.Path(), "{"+p.Name+"}") {
			place = "path"
		}
		params = append(params, object{"name": p.Name, "in": place, "required": p.Required, "description": p.Doc, "schema": schema})
	}
	op := object{"summary": r.Summary, "responses": s.responses(r)}
	if len(params) > 0 {
		op["parameters"] = params
	}
	if r.Body != nil {
		op["requestBody"] = object{"required": true, "content": s.content("application/json", r.Body)}
	}
	if r.Role != adminapi.Anyone {
		op["security"] = []object{{"token": []adminapi.Role{r.Role}}}
	}
	return op
}

// responses returns the responses of an endpoint. Invalid parameters result in 400, parameters that name a missing object in 404.
func (s *shapes) responses(r *adminapi.Endpoint) object {
	fails, media, answer := slices.Clone(r.ErrorStatuses), "application/problem+json", reflect.TypeFor[problem]()
	if r.Role == adminapi.Anyone {
		media, answer = "application/json", reflect.TypeFor[probed]()
	} else {
		fails = append(fails, http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusTooManyRequests,
			http.StatusServiceUnavailable)
	}
	if r.HTTPHandler == nil {
		fails = append(fails, http.StatusBadRequest)
	}
	for _, p := range r.Parameters() {
		if p.Type == reflect.TypeFor[adminapi.Org]() || p.Type == reflect.TypeFor[adminapi.Team]() ||
			p.Type == reflect.TypeFor[adminapi.PastTeam]() {
			fails = append(fails, http.StatusNotFound)
		}
	}
	out := make(object)
	for _, status := range fails {
		out[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": s.content(media, answer)}
	}
	switch t := r.ResponseType(); {
	case t != nil:
		status := r.Success()
		out[strconv.Itoa(status)] = object{"description": http.StatusText(status), "content": s.content("application/json", t)}
	case r.ContentType != "":
		out["200"] = object{"description": "OK", "content": object{r.ContentType: object{}}}
	default:
		out["204"] = object{"description": "No Content"}
	}
	return out
}

// schemaOf returns the schema of a parameter.
func schemaOf(p *adminapi.Param) object {
	schema := object{"type": "string"}
	switch {
	case p.Type.Kind() == reflect.Bool:
		schema["type"] = "boolean"
	case p.Type.Kind() == reflect.Int:
		schema["type"], schema["minimum"] = "integer", p.Min
		if p.Max > 0 {
			schema["maximum"] = p.Max
		}
	case p.OneOf != nil:
		schema["enum"] = p.OneOf
	}
	if p.Default != "" {
		schema["default"] = p.Default
	}
	if p.Repeatable {
		schema = object{"type": "array", "items": schema}
	}
	return schema
}

// shapes collects the schemas of types.
type shapes struct {
	schemas object
	names   map[reflect.Type]string
}

func (s *shapes) content(media string, t reflect.Type) object {
	return object{media: object{"schema": s.of(t)}}
}

// of returns the schema of a type's JSON.
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
	panic("admin: no schema for " + t.String())
}

// named returns a reference to the schema of a struct, which has the name of its type.
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
