package selfservice

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// Deps holds the dependencies of a Service. All fields are required.
type Deps struct {
	// Endpoints are the endpoints of the admin API.
	Endpoints []adminapi.Endpoint
	// Access returns the limits and budgets that apply to a caller.
	Access *callers.Access
	*view.Current
	Logger *slog.Logger
}

// Service serves the routes for callers. It is safe for concurrent use.
type Service struct {
	deps Deps
	rows *adminapi.Table
	busy *semaphore.Weighted
}

// atOnce limits the number of concurrent requests, because some of them read much of the shared store.
const atOnce = 8

// New returns a Service.
func New(deps Deps) *Service {
	return &Service{deps: deps, rows: adminapi.NewTable(deps.Endpoints, adminapi.Direct{}), busy: semaphore.NewWeighted(atOnce)}
}

// endpoint is a route for callers with its implementation.
type endpoint struct {
	id, method, path string
	answer           func(s *Service, ctx context.Context, ex *filter.Exchange) (any, error)
}

// endpoints returns the routes for callers with their implementations.
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

// Routes returns the routes for callers.
func (s *Service) Routes() (out []filter.Served) {
	for _, e := range endpoints() {
		out = append(out, filter.Serve(e.id, e.method, e.path, func(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
			return s.serve(ctx, ex, &e)
		}))
	}
	return out
}

// serve responds to a request of a caller.
func (s *Service) serve(ctx context.Context, ex *filter.Exchange, e *endpoint) (*filter.Response, error) {
	if ex.Caller == nil || ex.Caller.Key == "" { // the view of a caller without a key would not be restricted
		return nil, problem.Forbidden.New("authenticate with a key, token or certificate to see your own records")
	}
	if len(ex.In.Body) > 0 {
		return nil, problem.BadRequest.New("the operation does not accept a body")
	}
	if !s.busy.TryAcquire(1) {
		return nil, problem.Overloaded.New("too many concurrent self-service requests, try again").With("Retry-After", "1")
	}
	defer s.busy.Release(1)
	if leads(ex.Caller) && e.method == http.MethodGet && e.id != "self.me" {
		ex.RecordRead()
	}
	v, err := e.answer(s, ctx, ex)
	if err != nil {
		return nil, refusal(err)
	}
	return filter.JSONResponse(v)
}

// refusal converts the error of an endpoint into a problem for callers.
func refusal(err error) error {
	if _, ok := errors.AsType[*problem.Problem](err); ok {
		return err
	}
	faults, _ := errors.AsType[adminapi.FaultsError](err)
	bad, isBad := errors.AsType[adminapi.BadRequestError](err)
	refused, isRefused := errors.AsType[adminapi.RefusedError](err)
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
	return problem.LedgerUnavailable.New("the shared store is unavailable, try again").With("Retry-After", "1").Because(err)
}

// leads reports whether a caller can see its whole team.
func leads(c *identity.Caller) bool {
	return c.Team != "" && slices.Contains(c.Roles, identity.RoleLead)
}

// ask calls an endpoint for the caller's own data. given contains the parameters of the request.
func ask[A any](ctx context.Context, s *Service, ex *filter.Exchange, pattern string, given url.Values) (answer A, err error) {
	c := ex.Caller
	values := make(url.Values, len(given)+3)
	for name, v := range given {
		if name == "org" || name == "team" || name == "policy" || name == "key" && !leads(c) { // a filter by policy would reveal policies in shadow mode
			return answer, adminapi.BadParam(name, "is not accepted: the response contains only your own records")
		}
		values[name] = v
	}
	for _, p := range s.rows.Endpoint(pattern).Parameters() {
		switch {
		case p.Name == "org":
			values.Set("org", c.Org)
		case p.Name == "team" && c.Team != "":
			values.Set("team", c.Team)
		case p.Name == "key" && !leads(c):
			values.Set("key", c.Key)
		}
	}
	return adminapi.Call[A](ctx, s.rows, pattern, s.scope(c), values, nil)
}

// scope returns a principal for a caller: a viewer of its organisation that can access only its own team.
func (s *Service) scope(c *identity.Caller, roles ...adminapi.Role) adminapi.Principal {
	t := adminapi.Tenant{ID: c.Org, Teams: []string{}}
	if c.Team != "" {
		t.Teams = append(t.Teams, c.Team)
	}
	return adminapi.Principal{Name: c.Key, Roles: roles, Org: c.Org, Orgs: []adminapi.Tenant{t}, Now: s.deps.Now()}
}

// sees reports whether a caller can see what belongs to an owner.
func sees(c *identity.Caller, team, key string) bool {
	if leads(c) {
		return team == c.Team
	}
	return key == c.Key && (c.Team == "" || team == c.Team)
}
