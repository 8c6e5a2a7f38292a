package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Question asks for the predicted course of a request. It names its caller; no secret
// is needed, because nothing is sent but reads.
type Question struct {
	// Method and Target are those of the request line; the target may have a
	// query.
	Method, Target string
	// Header holds headers that matter, such as Content-Type; with a body and
	// without one, it is JSON.
	Header http.Header
	Body   string
	// Key is the id of a configured key. Org is its organisation; it may be left
	// out where one organisation alone has a key of that id.
	Org, Key string
	// Team and Roles are those of a caller without a key.
	Team  string
	Roles []identity.Role
}

// explainTimeout bounds one explanation, reads included.
const explainTimeout = 30 * time.Second

// Questions answers questions. All fields are required.
type Questions struct {
	*view.Current
	// DryRun returns a dry run of the configuration in force, Account the client of its accounts.
	DryRun  func() (*explain.DryRun, error)
	Account func() *upstream.Account

	Catalog *catalog.Catalog
	API     *schema.API
	Now     func() time.Time
}

// Explain reports the predicted course of a request under the configuration in
// force: nothing is sent but reads, nothing is counted and nothing is kept. Its
// error is a fault of the question.
func (a *Questions) Explain(ctx context.Context, q Question) (*explain.Report, error) {
	return a.explain(ctx, q, false)
}

// ExplainOffline is Explain without any read: neither of the platform nor of the
// shared store.
func (a *Questions) ExplainOffline(ctx context.Context, q Question) (*explain.Report, error) {
	return a.explain(ctx, q, true)
}

func (a *Questions) explain(ctx context.Context, q Question, offline bool) (*explain.Report, error) {
	caller, err := a.caller(q)
	if err != nil {
		return nil, err
	}
	in, err := q.request()
	if err != nil {
		return nil, err
	}
	run, err := a.DryRun()
	if err != nil {
		return nil, err
	}
	run.Offline = offline
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	return run.Run(ctx, in, caller)
}

// AnswerEstimate answers with the predicted course of a request.
func (a *Questions) AnswerEstimate(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
	run, err := a.DryRun()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	estimate, err := run.Estimate(ctx, ex)
	if err != nil {
		return nil, err
	}
	return filter.JSONResponse(estimate)
}

// request is the question as a request.
func (q *Question) request() (filter.Inbound, error) {
	path, query, _ := strings.Cut(q.Target, "?")
	if q.Method == "" || !strings.HasPrefix(path, "/") {
		return filter.Inbound{}, row.BadRequestError{Reason: "name a method and a path that begins with /"}
	}
	h := q.Header.Clone()
	if h == nil {
		h = make(http.Header, 1)
	}
	h.Del("Authorization")
	if q.Body != "" && h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	return filter.Inbound{
		Door: "explain", Method: q.Method, Path: path, Query: query, Major: 1, Minor: 1,
		Header: h, Length: int64(len(q.Body)), Body: []byte(q.Body),
	}, nil
}

// caller finds the caller of a question.
func (a *Questions) caller(q Question) (*identity.Caller, error) {
	if q.Key != "" {
		return a.keyCaller(q)
	}
	if q.Org == "" {
		return nil, row.BadRequestError{Reason: "name the id of a configured key, or a configured organisation"}
	}
	s := row.Scope{Orgs: callers.Orgs(a.Config())}
	if missing := cmp.Or(s.NoOrg(q.Org), s.NoTeam(q.Org, q.Team)); missing != "" {
		return nil, row.BadRequestError{Reason: missing}
	}
	return &identity.Caller{Org: q.Org, Team: q.Team, Roles: q.Roles}, nil
}

func (a *Questions) keyCaller(q Question) (*identity.Caller, error) {
	var found *identity.Caller
	orgs := a.Config().Orgs
	for i := range orgs {
		o := a.Org(orgs[i].ID)
		if o == nil || o.Key(q.Key) == nil || q.Org != "" && q.Org != o.ID {
			continue
		}
		if found != nil {
			return nil, row.BadRequestError{Reason: fmt.Sprintf("several organisations have a key %q: name one", q.Key)}
		}
		k := o.Key(q.Key)
		found = &identity.Caller{Org: o.ID, Team: k.Team, Key: k.ID, Roles: k.Roles, Exempt: k.Exempt}
	}
	if found == nil {
		return nil, row.BadRequestError{Reason: fmt.Sprintf("no key %q is configured", q.Key)}
	}
	return found, nil
}
