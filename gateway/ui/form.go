package ui

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// confirmation asks the user to confirm an irreversible action.
type confirmation struct {
	// Action is the address that the form is submitted to, with Fields.
	Action string
	Fields url.Values
	// Text describes the consequence, and Button names the action.
	Text, Button string
}

// confirmedField is the form field that marks a submission as confirmed.
const confirmedField = "confirmed"

// unconfirmed returns the confirmation that an action requires, or nil if it requires none or is already confirmed.
func unconfirmed(action string, form url.Values) *confirmation {
	c := confirmation{Fields: form}
	id, scope := form.Get("id"), scopeName(form.Get("scope"))
	switch action {
	case "keys/revoke":
		c.Button, c.Text = "Revoke key "+id, "Every request with the key "+id+" is denied from now on. This cannot be undone."
	case "keys/rotate":
		c.Button, c.Text = "Rotate key "+id, "The key "+id+" gets a new secret, which is shown once. "+oldSecret(form.Get("overlap"))
	case "resources/stop":
		c.Button, c.Text = "Stop "+id, "The pod stops, and its GPU is released. It can be started again while the platform has a free GPU of its type."
	case "limits/reset":
		scope = strings.Replace(scope, ":", " ", 1)
		c.Button = "Reset all rate limits of " + scope
		c.Text = "All windows are emptied: minute, hour and day. The requests of " + scope + " so far no longer count against its limits. This cannot be undone."
	case "spend/holds/release":
		c.Button, c.Text = "Release reservation "+id,
			"The cost of reservation "+id+" no longer counts against any budget, even if its resource exists. This cannot be undone."
	default:
		return nil
	}
	if form.Get(confirmedField) == "yes" {
		return nil
	}
	return &c
}

// oldSecret describes the end of a rotated secret. overlap is a duration, or "" for the default.
func oldSecret(overlap string) string {
	d, err := time.ParseDuration(overlap)
	switch {
	case overlap == "" || err != nil:
		return "The old secret expires after " + cmp.Or(overlap, "the default time") + "."
	case d == 0:
		return "The old secret expires now. Requests that use the old secret are denied."
	}
	return "The old secret expires in " + lasting(d) + "."
}

// confirm shows the confirmation of a form.
func (v *visit) confirm(c *confirmation) {
	c.Action = v.r.URL.Path
	v.readBadges()
	v.render(http.StatusOK, "confirm", frame{Title: c.Button + "?", Data: c})
}

// again shows the page of a form after a failed submission, with the error and the submitted values. If the page cannot show the form,
// again shows only the error.
func (v *visit) again(action string, form url.Values, back string, status int, fault string) {
	at, err := url.Parse(back)
	i := -1
	if err == nil {
		i = slices.IndexFunc(v.pages, func(p *page) bool { return p.serves(strings.TrimPrefix(at.Path, v.path)) })
	}
	if i < 0 {
		v.fail(status, fault)
		return
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), operator.PartsTime)
	defer cancel()
	next, p := *v, v.pages[i]
	next.r = v.r.Clone(ctx)
	next.r.Method, next.r.URL, next.r.RequestURI = http.MethodGet, at, at.RequestURI()
	next.r.Body, next.r.Form, next.r.PostForm = http.NoBody, nil, nil //nolint:forbidigo // a field, not http.PostForm
	if name, value := p.wildcard(strings.TrimPrefix(at.Path, v.path)); name != "" {
		next.r.SetPathValue(name, value)
	}
	next.action, next.typed, next.failure = action, form, fault
	data, _, missing := next.loaded(p)
	if data == nil {
		v.fail(status, fault)
		return
	}
	next.render(status, p.name, frame{Title: p.title, Page: p.entry(), Fault: missing, Failure: fault, Data: data})
}

// Failed reports whether the submission of an action's form failed, so that the page shows the form again. If id is not empty, only the
// form for the subject with that ID counts.
func (v *visit) Failed(action, id string) bool {
	return v.typed != nil && v.action == action && (id == "" || v.typed.Get("id") == id)
}

// sent returns the submitted fields without the field "back", and the address of the page that contains the form.
func (v *visit) sent() (form url.Values, back string, err error) {
	if err := v.r.ParseForm(); err != nil {
		return nil, "", adminapi.BadRequestError{Reason: "the submitted form cannot be parsed"}
	}
	form = make(url.Values)
	for name, values := range v.r.PostForm { //nolint:forbidigo // a submitted form, not http.PostForm
		if name != "back" {
			form[name] = values
		}
	}
	return form, v.local(strings.TrimSpace(v.r.PostFormValue("back"))), nil
}
