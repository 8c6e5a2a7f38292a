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

// StripCallerKeys prevents callers' keys, and the token of the request, from reaching the platform. Some clients put their own key into the
// environment of the resources they create. See [identity.Directory.ContainsKey] for how keys are recognised.
type StripCallerKeys struct{}

// Name implements Filter.
func (StripCallerKeys) Name() string { return "strip caller keys" }

// Request removes environment variables whose value contains a key. From calls to load-balanced endpoints, Request also removes headers
// that contain a key. It returns 422 for a key in any other part of the call that is sent to the platform: the path, the query, a header, a
// label, or the body including its member names. If the organisation sets RejectCallerKeys, Request returns 422 instead of removing a
// variable or header. It does not search the content meant for workers: inputs of jobs, chat bodies, and bodies for load-balanced
// endpoints.
func (StripCallerKeys) Request(_ context.Context, ex *Exchange) error {
	at := ex.keyInHead(ex.containsKey)
	if at == "" {
		at = ex.keyInBody(ex.containsKey)
	}
	if at != "" {
		ex.Event.Unknown = nil // contains the path
		p := problem.Invalid.New("the request contains a gateway key or token; remove it")
		p.Errors = []string{at + ": contains a gateway key or token"}
		return p
	}
	return nil
}

// keyInHead returns the name of the part of the request head that contains a key, or "".
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
	ex.Progress.keylessPath = path == ex.In.Path
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

// keyInHeaders sets ex.Body.removedHeaders to the headers that contain a key. These headers are not forwarded. If there are any and the
// organisation sets RejectCallerKeys, keyInHeaders returns "headers".
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

// unescaped returns text, which is a part of a request target, followed by its percent-decoded form. It returns only text if nothing can be
// decoded.
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

// keyInBody removes environment variables that contain a key. It returns the location of any other key in the body, or "".
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

// anywhere reports whether holds is true for any string, number or member name in a decoded value. It skips values that have not been
// decoded.
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

// placeOf returns the location of the first string that satisfies holds, or "". A member name is reported at its object, because the
// location must not contain the key.
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

// Response adds warnings about removed variables and headers.
func (StripCallerKeys) Response(_ context.Context, ex *Exchange) error {
	writeRemovedKeys(ex.Response, ex)
	return nil
}

// writeRemovedKeys adds warnings about keys removed from a call.
func writeRemovedKeys(a *Response, call *Exchange) {
	for _, text := range call.removedKeyTexts() {
		a.Header.Add(HeaderWarning, headerText("own_keys: "+text))
	}
}

// Notes implements Explainer.
func (StripCallerKeys) Notes(ex *Exchange, _ string) []string { return ex.removedKeyTexts() }

// removedKeyTexts describes the parts of a call that were removed because they contained a key.
func (ex *Exchange) removedKeyTexts() (texts []string) {
	if list := ex.Body.removedVars; len(list) > 0 {
		texts = append(texts, "removed from env because of a gateway key or token: "+strings.Join(list, ", "))
	}
	if list := ex.Body.removedHeaders; len(list) > 0 {
		texts = append(texts, "removed from the headers because of a gateway key or token: "+strings.Join(list, ", "))
	}
	return texts
}
