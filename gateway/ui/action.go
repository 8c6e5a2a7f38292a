package ui

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// actionPath returns the URL path that submits a form to an endpoint.
func actionPath(r *adminapi.Endpoint) string { return Path + actionName(r) }

// actionName returns the name of an endpoint's action.
func actionName(r *adminapi.Endpoint) string { return strings.TrimPrefix(r.Path(), "/admin/") }

// action returns a handler that calls an endpoint with the fields of a form. The field back is the address of the page to show next.
func (c *Console) action(r *adminapi.Endpoint) func(v *visit) {
	name := actionName(r)
	return func(v *visit) {
		form, back, err := v.sent()
		if err == nil {
			_, err = r.Admit(v.scope, form.Get("org"))
		}
		if err != nil {
			v.fail(adminapi.StatusOf(err))
			return
		}
		if ask := unconfirmed(name, form); ask != nil {
			v.confirm(ask, "")
			return
		}
		values := maps.Clone(form)
		values.Del(confirmedField)
		if name == "approvals/deny" { // its button submits the conditions of an approval, too
			values.Del("for")
			values.Del("max_usd")
		}
		if r.Pattern == createKey {
			values = keyForm(values)
		}
		answer, err := adminapi.Call[any](v.r.Context(), c.rows, r.Pattern, v.scope, values, nil)
		c.problems.forget(v.org)
		if err != nil {
			v.again(name, form, back, err)
			return
		}
		if r.Pattern == createKey || r.Pattern == rotateKey {
			made, err := as[secret](answer)
			if err != nil {
				v.fail(adminapi.StatusOf(err))
				return
			}
			v.render(http.StatusOK, "secret", frame{Title: "Key " + made.Key.ID, Page: "keys", Data: made})
			return
		}
		if by := form.Get("by"); v.scope.Anonymous && by != "" && len(by) <= maxName {
			c.setCookie(v.w, v.r, nameCookie, url.QueryEscape(by), lookTime)
		}
		v.leave(outcome(name, form, answer))
		http.Redirect(v.w, v.r, back, http.StatusSeeOther) // a page of the console, see local
	}
}

// Patterns of endpoints with a response that is shown only once.
const (
	createKey = "POST /admin/keys/create"
	rotateKey = "POST /admin/keys/rotate"
)

// secret holds a new key, or a key with a rotated secret.
type secret struct {
	Secret string             `json:"secret"`
	Key    settings.KeyRecord `json:"key"`
}

// keyForm builds the parameters of a new key from the fields of a form. Fields limit.NAME and budget.NAME set quotas and budgets.
func keyForm(form url.Values) url.Values {
	spec := make(map[string]any)
	limits, budget := make(map[string]any), make(map[string]any)
	for name, values := range form {
		value := strings.TrimSpace(values[0])
		kind, part, _ := strings.Cut(name, ".")
		switch {
		case value == "" || name == "org":
		case kind == "limit":
			limits[part] = number(value)
		case kind == "budget":
			budget[part] = number(value)
		case name == "roles":
			spec[name] = values
		case name == "expires" && len(value) == len(time.DateOnly):
			spec[name] = value + "T00:00:00Z"
		default:
			spec[name] = value
		}
	}
	if len(limits) > 0 {
		spec["limits"] = limits
	}
	if len(budget) > 0 {
		spec["budget"] = budget
	}
	text, _ := json.Marshal(spec) // strings and numbers
	return url.Values{"org": {form.Get("org")}, "spec": {string(text)}}
}

// number converts a text to a JSON number. It returns the text unchanged if it is not a number, so that the endpoint reports the error.
func number(text string) any {
	var n json.Number
	if json.Unmarshal([]byte(text), &n) == nil && text[0] != '"' {
		return n
	}
	return text
}
