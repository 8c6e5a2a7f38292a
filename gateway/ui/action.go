package ui

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
)

// actionName returns the name of an endpoint's action.
func actionName(r *adminapi.Endpoint) string { return strings.TrimPrefix(r.Path(), "/admin/") }

// action returns a handler that calls an endpoint with the fields of a form.
func (c *Console) action(r *adminapi.Endpoint) func(v *visit) error {
	name := actionName(r)
	return func(v *visit) error {
		if _, err := r.Admit(v.scope, v.r.PostFormValue("org")); err != nil {
			return err
		}
		return v.submit(name, func(form url.Values) (any, error) {
			switch name {
			case "approvals/deny": // its button submits the conditions of an approval, too
				form.Del("for")
				form.Del("max_usd")
			case createAction:
				form = keyForm(form)
			}
			defer v.forgetBadges()
			return adminapi.Call[any](v.r.Context(), c.rows, r.Pattern, v.scope, form, nil)
		})
	}
}

// Actions with a response that is shown only once.
const (
	createAction = "keys/create"
	rotateAction = "keys/rotate"
)

// submit handles the form of an action. It asks for confirmation if the action requires it, and then calls perform with a copy of the
// submitted fields. The field back is the address of the page to show next.
func (v *visit) submit(action string, perform func(form url.Values) (any, error)) error {
	form, back, err := v.sent()
	if err != nil {
		return err
	}
	if ask := unconfirmed(action, form); ask != nil {
		v.confirm(ask)
		return nil
	}
	fields := maps.Clone(form)
	fields.Del(confirmedField)
	answer, err := perform(fields)
	switch status, reason := adminapi.StatusOf(err); {
	case status == http.StatusUnauthorized:
		return err
	case err != nil:
		v.again(action, form, back, status, reason)
		return nil //nolint:nilerr // the form shows the error
	case action == createAction || action == rotateAction:
		return v.showSecret(answer)
	}
	if by := form.Get("by"); v.scope.Anonymous && by != "" && len(by) <= maxName {
		v.setCookie(v.w, v.r, nameCookie, url.QueryEscape(by), lookTime)
	}
	v.leave(outcome(action, form, answer))
	http.Redirect(v.w, v.r, back, http.StatusSeeOther) // a page of the console, see local
	return nil
}

// showSecret shows the secret of a key in the response of an action.
func (v *visit) showSecret(answer any) error {
	made, err := as[callers.KeyResponse](answer)
	if err != nil {
		return err
	}
	page := "keys"
	if v.rows == nil {
		page = "mykeys"
	}
	v.render(http.StatusOK, "secret", frame{Title: "Key " + made.Key.ID, Page: page, Data: made})
	return nil
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
