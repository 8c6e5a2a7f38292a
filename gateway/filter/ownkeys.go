package filter

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
)

// OwnKeys keeps callers' keys from the platform. Some clients put the key that they
// call with into the environment of the resources that they make.
type OwnKeys struct{}

// Name implements Filter.
func (OwnKeys) Name() string { return "own keys" }

// Request takes variables that hold a key out of the environment, and refuses with 422
// a key anywhere else in a body, as in the name of a member; also in the environment, where the organisation wants
// that. Inputs of jobs belong to their workers and are not looked at.
func (OwnKeys) Request(_ context.Context, ex *Exchange) error {
	body, ok := ex.Body.Doc.(map[string]any)
	if !ok || ex.Dialect.Runs() {
		return nil
	}
	holds := func(text string) bool { return ex.callers.Directory.Has(text) || identity.HoldsKey(text) }
	if !anywhere(body, holds) {
		return nil
	}
	env, _ := body["env"].(map[string]any)
	if !ex.Tenant.RefuseKeys {
		for name, v := range env {
			if text, isText := v.(string); isText && holds(text) && !holds(name) {
				ex.Body.withheld = append(ex.Body.withheld, name)
			}
		}
	}
	if len(ex.Body.withheld) > 0 {
		slices.Sort(ex.Body.withheld)
		kept := maps.Clone(env)
		maps.DeleteFunc(kept, func(name string, _ any) bool { return slices.Contains(ex.Body.withheld, name) })
		body = maps.Clone(body)
		body["env"], ex.Body.Doc = kept, body
	}
	if at := placeOf(body, "$", holds); at != "" {
		p := problem.Invalid.New("the body holds a key of this gateway, which the platform must not get")
		p.Errors = []string{at + ": holds a key of this gateway"}
		return p
	}
	return nil
}

// anywhere reports whether a condition holds for any string in a decoded value, or for a
// member's name.
func anywhere(v any, holds func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return holds(v)
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

// Response warns of the variables that were taken out.
func (OwnKeys) Response(_ context.Context, ex *Exchange) error {
	tellWithheld(ex.Answer, ex)
	return nil
}

// tellWithheld names on an answer the keys taken out of the body of a call.
func tellWithheld(a *Answer, call *Exchange) {
	if len(call.Body.withheld) > 0 {
		a.Header.Add(HeaderWarning, headerText("own_keys: "+call.withheldText()))
	}
}

// Notes implements Noter.
func (OwnKeys) Notes(ex *Exchange, _ string) []string {
	if len(ex.Body.withheld) == 0 {
		return nil
	}
	return []string{ex.withheldText()}
}

func (ex *Exchange) withheldText() string {
	return strings.Join(ex.Body.withheld, ", ") + " of env held a key of this gateway and was taken out"
}
