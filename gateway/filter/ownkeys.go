package filter

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
)

// StripCallerKeys keeps callers' keys from the platform. Some clients put the key that they
// call with into the environment of the resources that they make. See
// [identity.Directory.ContainsKey] for the places in a text where a key is found.
type StripCallerKeys struct{}

// Name implements Filter.
func (StripCallerKeys) Name() string { return "own keys" }

// Request removes variables that hold a key from the environment, and headers that
// hold a key from a call of a load-balanced endpoint. It refuses with 422 a key in any other part of a call
// that the platform gets: in the path, the query, a header or the body, names of members
// included; and in labels. Where the organisation wants that, it refuses a key in the environment and in those headers, too. The input of a job, the
// body of a chat and the body for a load-balanced endpoint belong to workers and are not searched.
func (StripCallerKeys) Request(_ context.Context, ex *Exchange) error {
	holds := ex.pipeline.Callers.Directory.ContainsKey
	at := ex.keyInHead(holds)
	if at == "" {
		at = ex.keyInBody(holds)
	}
	if at != "" {
		ex.Event.Unknown = nil // which has the path
		p := problem.Invalid.New("the request holds a key of this gateway, which the platform must not get")
		p.Errors = []string{at + ": holds a key of this gateway"}
		return p
	}
	return nil
}

// keyInHead returns the part of a call's head that holds a key, "" for none.
func (ex *Exchange) keyInHead(holds func(string) bool) string {
	path, query := ex.Operation.Path, ""
	if len(ex.Params) > 0 {
		path = expand(path, ex.Params)
	}
	if ex.Opaque() {
		path, query = ex.Params["id"]+" "+ex.Params["path"], ex.In.Query
	}
	if holds(unescaped(path)) {
		return "path"
	}
	if holds(unescaped(query)) {
		return "query"
	}
	for name, values := range ex.Query {
		if holds(name) || slices.ContainsFunc(values, holds) {
			return "query"
		}
	}
	for _, name := range []string{HeaderLabels, "Last-Event-Id"} {
		if slices.ContainsFunc(ex.In.Header[name], holds) {
			return name
		}
	}
	if ex.Opaque() {
		return ex.keyInHeaders(holds)
	}
	return ""
}

// keyInHeaders notes the headers that hold a key, which the worker does not get. It returns the part that is refused in their place, "" for none.
func (ex *Exchange) keyInHeaders(holds func(string) bool) string {
	for name, values := range endToEnd(ex.In.Header) {
		if holds(name) || slices.ContainsFunc(values, holds) {
			ex.Body.removedHeaders = append(ex.Body.removedHeaders, name)
		}
	}
	if ex.Tenant.RejectCallerKeys && len(ex.Body.removedHeaders) > 0 {
		return "headers"
	}
	slices.Sort(ex.Body.removedHeaders)
	return ""
}

// unescaped returns a part of a request target with its escapes decoded, and as it is, too, where that differs.
func unescaped(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	decoded, err := url.PathUnescape(text)
	if err != nil {
		return text
	}
	return text + " " + decoded
}

// keyInBody removes variables that hold a key, and returns the part of a body that holds another key, "" for none.
func (ex *Exchange) keyInBody(holds func(string) bool) string {
	body, ok := ex.Body.Doc.(map[string]any)
	if !ok || ex.Dialect == route.Chat {
		return ""
	}
	if ex.Body.Unknown != nil && anywhere(ex.Body.Unknown, holds) {
		return placeOf(ex.Body.Unknown, "$", holds)
	}
	if !anywhere(body, holds) {
		return ""
	}
	env, _ := body["env"].(map[string]any)
	if !ex.Tenant.RejectCallerKeys && !ex.Dialect.IsRun() {
		for name, v := range env {
			if text, isText := v.(string); isText && holds(text) && !holds(name) {
				ex.Body.removedVars = append(ex.Body.removedVars, name)
			}
		}
	}
	if len(ex.Body.removedVars) > 0 {
		slices.Sort(ex.Body.removedVars)
		kept := maps.Clone(env)
		maps.DeleteFunc(kept, func(name string, _ any) bool { return slices.Contains(ex.Body.removedVars, name) })
		body = maps.Clone(body)
		body["env"], ex.Body.Doc = kept, body
	}
	return placeOf(body, "$", holds)
}

// anywhere reports whether a condition holds for any string or number in a decoded value, or for a
// member's name. A value that is not decoded has neither.
func anywhere(v any, holds func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return holds(v)
	case json.Number:
		return holds(v.String())
	case map[string]any:
		for name, member := range v {
			if holds(name) || anywhere(member, holds) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(element any) bool { return anywhere(element, holds) })
	}
	return false
}

// placeOf returns where in a decoded value the first string is that a condition holds
// for, "" if there is none. A member's name is at the place of its object, and in no place.
func placeOf(v any, at string, holds func(string) bool) string {
	switch v := v.(type) {
	case string:
		if holds(v) {
			return at
		}
	case json.Number:
		if holds(v.String()) {
			return at
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if holds(name) {
				return at
			}
			if found := placeOf(v[name], at+"."+name, holds); found != "" {
				return found
			}
		}
	case []any:
		for i := range v {
			if found := placeOf(v[i], at+"["+strconv.Itoa(i)+"]", holds); found != "" {
				return found
			}
		}
	}
	return ""
}

// Response warns of the variables and headers that were removed.
func (StripCallerKeys) Response(_ context.Context, ex *Exchange) error {
	writeRemovedKeys(ex.Response, ex)
	return nil
}

// writeRemovedKeys names on an answer the keys removed from a call.
func writeRemovedKeys(a *Response, call *Exchange) {
	for _, text := range call.removedKeyTexts() {
		a.Header.Add(HeaderWarning, headerText("own_keys: "+text))
	}
}

// Notes implements Noter.
func (StripCallerKeys) Notes(ex *Exchange, _ string) []string { return ex.removedKeyTexts() }

// removedKeyTexts says which parts of a call were removed because they held a key.
func (ex *Exchange) removedKeyTexts() (texts []string) {
	if list := ex.Body.removedVars; len(list) > 0 {
		texts = append(texts, strings.Join(list, ", ")+" of env held a key of this gateway and was taken out")
	}
	if list := ex.Body.removedHeaders; len(list) > 0 {
		texts = append(texts, strings.Join(list, ", ")+" held a key of this gateway and was taken out of the headers")
	}
	return texts
}
