package ui

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// teamPath is the path of the callers' first page.
const teamPath = "/tollgate/ui/"

// Team holds the dependencies of the callers' pages. All fields are required.
type Team struct {
	// Ask sends a request to the data listener with the given body. since is the time at which its token was presented, or zero for now.
	// The request has the client address of r, and is identified, limited and recorded like any other request.
	Ask func(r *http.Request, body []byte, since time.Time) Answer
	// Encrypted reports whether a request arrived over TLS, at the listener or at a load balancer in front of it.
	Encrypted func(r *http.Request) bool
	// Config returns the current configuration, which contains the issuers for login.
	Config func() *settings.Config
	// Attempt counts a request as an attempt with a wrong key. undo removes the request from the count again. If the client address has no
	// attempts left, Attempt counts nothing, undo is nil, and wait is the time until the next attempt is possible.
	Attempt func(r *http.Request) (undo func(), wait time.Duration)
	Now     func() time.Time
	Logger  *slog.Logger
	// HourlyDays is the retention of hourly costs, in days.
	HourlyDays int
}

// Answer is a response of the data listener.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// NewTeam returns the console for callers. The console has a page or a form for each route of the self-service API. It stores the keys and
// tokens of users in the same way as the operators' console.
func NewTeam(deps Team, sessions *Sessions) *Console {
	c := &Console{
		path: teamPath, cookies: "/tollgate", secureCookies: "__Host-tollgate_team", asks: "your key or token", pages: teamPages(),
		people: members{deps}, sessions: sessions,
		now: deps.Now, hourlyDays: deps.HourlyDays, logger: deps.Logger,
	}
	c.serveCommon()
	for _, a := range acts() {
		c.mux.HandleFunc("POST "+teamPath+a.path, c.visited(func(v *visit) error { return v.act(a) }))
	}
	return c
}

// members authenticates the holders of callers' keys and tokens.
type members struct{ Team }

func (c members) private(r *http.Request) string {
	if c.Encrypted(r) || onLoopback(r) {
		return ""
	}
	return "The callers' pages are served only over TLS (tls or balancers.forwarded_hops) or on a loopback address."
}

func (c members) encrypted(r *http.Request) bool { return c.Encrypted(r) }

func (members) open() bool { return false }

func (c members) logins() []identity.Login { return c.Config().Logins() }

func (c members) attempt(r *http.Request) (undo func(), wait time.Duration) { return c.Attempt(r) }

// enter identifies the caller by key or token. A wrong key or token counts as a failed attempt, as on any other route.
func (c members) enter(r *http.Request, token string, login bool) (session, error) {
	s := session{Began: c.Now().UTC(), Login: login}
	me, err := asked[selfservice.Me](c.ask(r, token, &s, http.MethodGet, "me", nil, nil))
	if err != nil {
		return s, err
	}
	s.Name = cmp.Or(me.Subject, me.Key)
	s.Org, s.Holder, s.Zone = me.Org, me.Key, me.Zone
	for _, role := range me.Roles {
		s.Lead = s.Lead || role == string(identity.RoleLead) && me.Team != ""
	}
	return s, nil
}

// asker returns the principal of a session. The token is validated by each request that the page sends.
func (members) asker(_ *http.Request, _ string, s *session) (adminapi.Principal, error) {
	return adminapi.Principal{Name: s.Name, Orgs: []adminapi.Tenant{{Zone: s.Zone}}}, nil // the pages of callers name no organisation
}

// ask calls a route with the token of a session. The route is relative to /tollgate/ unless path begins with a slash.
func (c members) ask(r *http.Request, token string, s *session, method, path string, query url.Values, body []byte) Answer {
	if !strings.HasPrefix(path, "/") {
		path = "/tollgate/" + path
	}
	target := url.URL{Path: path, RawQuery: query.Encode()}
	if unescaped, err := url.PathUnescape(path); err == nil {
		target.Path, target.RawPath = unescaped, path
	}
	q := r.Clone(r.Context())
	q.Method, q.URL, q.RequestURI, q.Body, q.ContentLength = method, &target, target.RequestURI(), http.NoBody, int64(len(body))
	q.Header = http.Header{
		"Authorization": {"Bearer " + token}, "User-Agent": r.Header["User-Agent"],
		"X-Forwarded-For": r.Header["X-Forwarded-For"],
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	since := time.Time{}
	if s.Login {
		since = s.Began
	}
	return c.Ask(q, body, since)
}

// asked decodes a response of the data listener. For a response with status 400 or above, it returns an [admin.TokenError].
func asked[T any](a Answer) (out T, err error) {
	if a.Status < http.StatusBadRequest {
		if len(a.Body) > 0 && json.Unmarshal(a.Body, &out) != nil {
			err = adminapi.RefusedError{Status: http.StatusInternalServerError, Reason: "the gateway's response cannot be decoded"}
		}
		return out, err
	}
	var p problem.Problem
	if err := json.Unmarshal(a.Body, &p); err != nil {
		p.Detail = http.StatusText(a.Status)
	}
	wait, _ := time.ParseDuration(a.Header.Get("Retry-After") + "s") // 0 if the header is missing
	return out, admin.TokenError{RefusedError: adminapi.RefusedError{
		Status: a.Status,
		Reason: strings.Join(append([]string{p.Detail}, p.Errors...), "; "),
	}, Wait: wait}
}

// own calls a caller route for a part of a page.
func own[T any](v *visit, path string, query url.Values) part[T] {
	return partOf(asked[T](v.askOwn(http.MethodGet, path, query, nil)))
}

// askOwn calls a route under /tollgate/ on behalf of the principal.
func (v *visit) askOwn(method, path string, query url.Values, body []byte) Answer {
	people, _ := v.people.(members)
	return people.ask(v.r, v.token, &v.session, method, path, query, body)
}

// act describes a form of callers that sends its fields to a route.
type act struct {
	// path is the path of the form relative to the console.
	path string
	// method and route are the method and path of the request. The route is relative to /tollgate/ unless it begins with a slash. {id} in
	// the route is replaced by the field id.
	method, route string
	// fields lists the form fields that become query parameters.
	fields []string
	// content is the request body. It may be empty.
	content string
}

func acts() []act {
	return []act{
		{path: "approvals/grant", method: http.MethodPost, route: "approvals/{id}/grant", fields: []string{"for", "max_usd", "reason"}},
		{path: "approvals/deny", method: http.MethodPost, route: "approvals/{id}/deny", fields: []string{"reason"}},
		{path: "resources/snooze", method: http.MethodPost, route: "snooze/{id}", fields: []string{"for"}},
		{path: "resources/stop", method: http.MethodPost, route: "/v2/pods/{id}/action", content: `{"action":"stop"}`},
		{path: createAction, method: http.MethodPost, route: "keys"},
		{path: rotateAction, method: http.MethodPost, route: "keys/{id}/rotate", fields: []string{"overlap"}},
		{path: "keys/revoke", method: http.MethodDelete, route: "keys/{id}"},
	}
}

// act sends a form to its route.
func (v *visit) act(a act) error {
	return v.submit(a.path, func(form url.Values) (any, error) {
		query := url.Values{}
		for _, name := range a.fields {
			if value := strings.TrimSpace(form.Get(name)); value != "" {
				query.Set(name, value)
			}
		}
		var body []byte
		if a.content != "" {
			body = []byte(a.content)
		}
		if a.path == createAction {
			body = []byte(keyForm(form).Get("spec"))
		}
		return asked[any](v.askOwn(a.method, strings.Replace(a.route, "{id}", url.PathEscape(form.Get("id")), 1), query, body))
	})
}
