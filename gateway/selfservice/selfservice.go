package selfservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// Deps are the sources of the views. All fields are required.
type Deps struct {
	// Rows are those of the operators' listener.
	Rows []row.Row
	// Access knows the limits and the budgets that a caller's calls count against.
	Access *callers.Access
	*view.Current
	Logger *slog.Logger
}

// Service answers callers. It is safe for concurrent use.
type Service struct {
	deps Deps
	rows *row.Rows
	busy *semaphore.Weighted
}

// atOnce bounds the answers that are made at once: some read much of the shared store.
const atOnce = 8

// New returns a Service.
func New(deps Deps) *Service {
	return &Service{deps: deps, rows: row.NewRows(deps.Rows, row.Direct{}), busy: semaphore.NewWeighted(atOnce)}
}

// endpoint is a route of callers with its answer.
type endpoint struct {
	id, method, path string
	answer           func(s *Service, ctx context.Context, ex *filter.Exchange) (any, error)
}

// endpoints are the routes of callers.
func endpoints() []endpoint {
	get := func(id, path string, answer func(s *Service, ctx context.Context, ex *filter.Exchange) (any, error)) endpoint {
		return endpoint{id, http.MethodGet, "/tollgate/" + path, answer}
	}
	return []endpoint{
		get("self.me", "me", (*Service).me),
		get("self.spend", "spend", (*Service).spend),
		get("self.resources", "resources", (*Service).resources),
		get("self.decisions", "decisions", (*Service).decisions),
		get("self.decision", "decisions/{id}", (*Service).decision),
		get("self.approvals", "approvals", (*Service).approvals),
		{"self.approvals.grant", http.MethodPost, "/tollgate/approvals/{id}/grant", (*Service).grant},
		{"self.approvals.deny", http.MethodPost, "/tollgate/approvals/{id}/deny", (*Service).deny},
	}
}

// Routes lists the routes of callers.
func Routes() []route.Route {
	var out []route.Route
	for _, e := range endpoints() {
		out = append(out, route.Route{ID: e.id, Dialect: route.V2, Method: e.method, Pattern: e.path})
	}
	return out
}

// Answers returns the responders, by route id.
func (s *Service) Answers() map[string]filter.Responder {
	out := make(map[string]filter.Responder)
	for _, e := range endpoints() {
		out[e.id] = func(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
			if ex.Caller == nil || ex.Caller.Key == "" { // whose view would have no bound
				return nil, problem.Forbidden.New("only a caller with a key, a token or a certificate is shown what is its own")
			}
			if len(ex.In.Body) > 0 {
				return nil, problem.BadRequest.New("the operation takes no body")
			}
			if !s.busy.TryAcquire(1) {
				return nil, problem.Overloaded.New("too many callers ask about themselves at once").With("Retry-After", "1")
			}
			defer s.busy.Release(1)
			if leads(ex.Caller) && e.method == http.MethodGet && e.id != "self.me" {
				ex.RecordRead()
			}
			v, err := e.answer(s, ctx, ex)
			if err != nil {
				return nil, refusal(err)
			}
			return answer(v)
		}
	}
	return out
}

// answer is JSON for one caller, which is not to be kept.
func answer(v any) (*filter.Response, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return &filter.Response{
		Status: http.StatusOK, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}},
	}, nil
}

// refusal is the error of a row as callers are told it.
func refusal(err error) error {
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return err
	}
	faults, _ := errors.AsType[row.FaultsError](err)
	bad, isBad := errors.AsType[row.BadRequestError](err)
	refused, isRefused := errors.AsType[row.RefusedError](err)
	switch {
	case faults != nil && faults.Status() == http.StatusNotFound, isRefused && refused.Status == http.StatusNotFound:
		return problem.NotFound.New(err.Error())
	case faults != nil:
		return problem.BadRequest.New(faults.Error())
	case isBad:
		return problem.BadRequest.New(bad.Reason)
	case isRefused:
		return problem.Forbidden.New(refused.Reason)
	}
	return problem.LedgerUnavailable.New("the shared store does not answer").With("Retry-After", "1").Because(err)
}

// leads reports whether a caller sees its whole team.
func leads(c *identity.Caller) bool {
	return c.Team != "" && slices.Contains(c.Roles, identity.RoleLead)
}

// ask asks a row about the caller's own things. given are parameters of the request.
func ask[A any](ctx context.Context, s *Service, ex *filter.Exchange, pattern string, given url.Values) (answer A, err error) {
	c := ex.Caller
	values := make(url.Values, len(given)+3)
	for name, v := range given {
		if name == "org" || name == "team" || name == "policy" || name == "key" && !leads(c) { // by policy one would learn of those tried out
			return answer, row.Bad(name, "is no parameter here: the answer is about what is your own")
		}
		values[name] = v
	}
	for _, p := range s.rows.Row(pattern).Parameters() {
		switch {
		case p.Name == "org":
			values.Set("org", c.Org)
		case p.Name == "team" && c.Team != "":
			values.Set("team", c.Team)
		case p.Name == "key" && !leads(c):
			values.Set("key", c.Key)
		}
	}
	return row.Ask[A](ctx, s.rows, pattern, s.scope(c), values, nil)
}

// scope is a caller as an asker: a viewer of its organisation that knows of its own team alone.
func (s *Service) scope(c *identity.Caller, roles ...row.Role) row.Scope {
	t := row.Tenant{ID: c.Org, Teams: []string{}}
	if c.Team != "" {
		t.Teams = append(t.Teams, c.Team)
	}
	return row.Scope{Name: c.Key, Roles: roles, Org: c.Org, Orgs: []row.Tenant{t}, Now: s.deps.Now()}
}

// sees reports whether something of an owner is shown to a caller.
func sees(c *identity.Caller, team, key string) bool {
	if leads(c) {
		return team == c.Team
	}
	return key == c.Key && (c.Team == "" || team == c.Team)
}
