package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// explainTimeout limits one explanation, including reads.
const explainTimeout = 30 * time.Second

// Explainer predicts the outcome of requests. All fields are required.
type Explainer struct {
	*view.Current
	// Compiled returns the configuration in force.
	Compiled func() Compiled

	Catalog   *catalog.Catalog
	API       *schema.API
	Limiter   *ratelimit.Limiter
	Approvals *approval.Store
	Ledger    *ledger.Ledger
}

// Compiled is one compiled configuration.
type Compiled struct {
	Config   *settings.Config
	Account  *upstream.Account
	Pipeline *filter.Pipeline
	Reader   *filter.Reader
	Engine   *policies.Engine
}

// dryRun returns a dry run of the configuration in force.
func (a *Explainer) dryRun() *explain.DryRun {
	now := a.Compiled()
	return &explain.DryRun{
		Pipeline: now.Pipeline, Reader: now.Reader, Engine: now.Engine, Reads: filter.ReadOperations(a.API), Limiter: a.Limiter,
		Approvals: a.Approvals, Ledger: a.Ledger, Now: a.Now,
		Entries: func(org string) []policies.Entry { return callers.Entries(now.Config, org) },
	}
}

// Explain predicts the outcome of a request with the configuration in force. It sends only read requests. It does not count the request or
// store anything. It returns an error if the request is invalid.
func (a *Explainer) Explain(ctx context.Context, q *ExplainBody) (*explain.Report, error) {
	caller, err := a.caller(q)
	if err != nil {
		return nil, err
	}
	in, err := q.request()
	if err != nil {
		return nil, err
	}
	run := a.dryRun()
	run.Offline = q.Offline
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	return run.Run(ctx, in, caller), nil
}

// Estimate responds to a caller's dry run with the predicted outcome of its request. It is the responder of filter.AnswerDryRun.
func (a *Explainer) Estimate(ctx context.Context, ex *filter.Exchange) (*filter.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	return filter.JSONResponse(a.dryRun().Estimate(ctx, ex))
}

// request converts the description into a request. A body without a content type is JSON.
func (b *ExplainBody) request() (filter.Inbound, error) {
	path, query, _ := strings.Cut(b.Path, "?")
	if b.Method == "" || !strings.HasPrefix(path, "/") {
		return filter.Inbound{}, adminapi.BadRequestError{Reason: "method and a path that starts with / are required"}
	}
	h := make(http.Header, len(b.Header)+1)
	for name, value := range b.Header {
		h.Set(name, value)
	}
	h.Del("Authorization")
	if b.Body != "" && h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	return filter.Inbound{
		Door: "explain", Method: b.Method, Path: path, Query: query, Major: 1, Minor: 1,
		Header: h, Length: int64(len(b.Body)), Body: []byte(b.Body),
	}, nil
}

// caller returns the caller named by the request.
func (a *Explainer) caller(q *ExplainBody) (*identity.Caller, error) {
	if q.Key != "" {
		return a.keyCaller(q)
	}
	if q.Org == "" {
		return nil, adminapi.BadRequestError{Reason: "the request must name a configured key or a configured organisation"}
	}
	s := adminapi.Principal{Orgs: callers.Orgs(a.Config())}
	if missing := cmp.Or(s.OrgProblem(q.Org), s.TeamProblem(q.Org, q.Team)); missing != "" {
		return nil, adminapi.BadRequestError{Reason: missing}
	}
	c := &identity.Caller{Org: q.Org, Team: q.Team}
	for _, role := range q.Roles {
		c.Roles = append(c.Roles, identity.Role(role))
	}
	return c, nil
}

func (a *Explainer) keyCaller(q *ExplainBody) (*identity.Caller, error) {
	var found *identity.Caller
	orgs := a.Config().Orgs
	for i := range orgs {
		o := a.Org(orgs[i].ID)
		if o == nil || o.Key(q.Key) == nil || q.Org != "" && q.Org != o.ID {
			continue
		}
		if found != nil {
			return nil, adminapi.BadRequestError{Reason: fmt.Sprintf("several organisations have a key %q: specify the organisation", q.Key)}
		}
		k := o.Key(q.Key)
		found = &identity.Caller{Org: o.ID, Team: k.Team, Key: k.ID, Roles: k.Roles, Exempt: k.Exempt}
	}
	if found == nil {
		return nil, adminapi.BadRequestError{Reason: fmt.Sprintf("unknown key %q", q.Key)}
	}
	return found, nil
}
