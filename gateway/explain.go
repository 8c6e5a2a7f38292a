package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/translate"
)

// Question asks what would become of a request. It names its caller; no secret
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

// Explain reports what would become of a request under the configuration in
// force: nothing is sent but reads, nothing is counted and nothing is kept. Its
// error is a fault of the question.
func (g *Gateway) Explain(ctx context.Context, q Question) (*explain.Report, error) {
	return g.explain(ctx, q, false)
}

// ExplainOffline is Explain without any read: neither of the platform nor of the
// shared store.
func (g *Gateway) ExplainOffline(ctx context.Context, q Question) (*explain.Report, error) {
	return g.explain(ctx, q, true)
}

func (g *Gateway) explain(ctx context.Context, q Question, offline bool) (*explain.Report, error) {
	now := g.current.Load()
	caller, err := callerOf(now.config, q)
	if err != nil {
		return nil, err
	}
	in, err := q.request()
	if err != nil {
		return nil, err
	}
	run, err := g.dryRun(now)
	if err != nil {
		return nil, err
	}
	run.Offline = offline
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	return run.Run(ctx, in, caller)
}

// dryRun returns a dry run of a configuration.
func (g *Gateway) dryRun(now *state) (*explain.DryRun, error) {
	// What a dry run makes must not be remembered.
	first, gql, err := newTranslators(now.config, translate.Deps{Now: g.deps.Now}.WithDefaults())
	if err != nil {
		return nil, err
	}
	return &explain.DryRun{
		Pipeline: now.pipeline, Translators: map[route.Dialect]filter.Translator{route.V1: first, route.GraphQL: gql},
		Counted: g.limiter.Show, Reads: filter.ReadsOf(g.api), Reader: now.reader,
		Ledger: g.money.Ledger.Store.Show, Approval: g.approvals.Get, Entries: func(org string) []policies.Entry { return entriesOf(now.config, org) }, Decide: now.engine.Decide, Now: g.deps.Now,
	}, nil
}

// answerEstimate answers what would become of a request.
func (g *Gateway) answerEstimate(ctx context.Context, ex *filter.Exchange) (*filter.Answer, error) {
	run, err := g.dryRun(g.current.Load())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	estimate, err := run.Estimate(ctx, ex.In.Dry(), ex.Caller)
	if err != nil {
		return nil, err
	}
	return filter.AnswerJSON(estimate)
}

// request is the question as a request.
func (q *Question) request() (filter.Inbound, error) {
	path, query, _ := strings.Cut(q.Target, "?")
	if q.Method == "" || !strings.HasPrefix(path, "/") {
		return filter.Inbound{}, admin.BadRequestError{Reason: "name a method and a path that begins with /"}
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

// caller finds who a question is about.
func callerOf(c *settings.Config, q Question) (*identity.Caller, error) {
	if q.Key != "" {
		return keyCaller(c, q)
	}
	if q.Org == "" {
		return nil, admin.BadRequestError{Reason: "name the id of a configured key, or a configured organisation"}
	}
	s := row.Scope{Orgs: tenantsOf(c)}
	if missing := cmp.Or(s.NoOrg(q.Org), s.NoTeam(q.Org, q.Team)); missing != "" {
		return nil, admin.BadRequestError{Reason: missing}
	}
	return &identity.Caller{Org: q.Org, Team: q.Team, Roles: q.Roles}, nil
}

func keyCaller(c *settings.Config, q Question) (*identity.Caller, error) {
	var found *identity.Caller
	for _, o := range c.Orgs {
		for k := range o.AllKeys() {
			if k.ID != q.Key || q.Org != "" && q.Org != o.ID {
				continue
			}
			if found != nil {
				return nil, admin.BadRequestError{Reason: fmt.Sprintf("several organisations have a key %q: name one", q.Key)}
			}
			found = &identity.Caller{Org: o.ID, Team: k.Team, Key: k.ID, Roles: k.Roles, Exempt: k.Exempt}
		}
	}
	if found == nil {
		return nil, admin.BadRequestError{Reason: fmt.Sprintf("no key %q is configured", q.Key)}
	}
	return found, nil
}

// entries lists the policies an organisation has switched on.
func entriesOf(c *settings.Config, org string) []policies.Entry {
	if o := c.Org(org); o != nil {
		return o.Policies.Policies
	}
	return nil
}

// decisions tells operators what was decided, and what would be.
type decisions struct{ g *Gateway }

// Find implements admin.Decisions.
func (d decisions) Find(ctx context.Context, org, id string) (any, error) {
	if x, ok := d.g.history.Find(d.g.pipeline().Chain, id); ok && (org == "" || x.Caller.Org == org) {
		return x, nil
	}
	if d.g.archive == nil {
		return nil, nil //nolint:nilnil // none is kept
	}
	x, err := d.g.archive.store.Find(ctx, d.orgs(org), id)
	if x == nil {
		return nil, err
	}
	return x, err
}

// List implements admin.Decisions.
func (d decisions) List(ctx context.Context, asked admin.DecisionQuery) (any, error) {
	return d.list(ctx, explain.Query(asked))
}

// Log implements admin.Decisions.
func (d decisions) Log(ctx context.Context, w io.Writer, org string, since time.Time) error {
	if d.g.org(org) == nil {
		return admin.ErrNoOrg
	}
	file := d.g.started.Decisions.File
	if file == nil {
		return row.RefusedError{Status: http.StatusConflict, Reason: "this gateway writes its decisions to no file: decisions.file is not set"}
	}
	return decisionlog.Copy(ctx, file, w, org, since)
}

// orgs are the configured organisations, or the one of an id.
func (d decisions) orgs(id string) []string {
	var ids []string
	for _, o := range d.g.current.Load().config.Orgs {
		if id == "" || o.ID == id {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// Explain implements admin.Decisions.
func (d decisions) Explain(ctx context.Context, org string, body []byte) (any, error) {
	q, err := parseQuestion(body)
	if err != nil {
		return nil, admin.BadRequestError{Reason: err.Error()}
	}
	if q.Org = cmp.Or(q.Org, org); org != "" && q.Org != org {
		return nil, admin.BadRequestError{Reason: "org: the token is bound to organisation " + org}
	}
	return d.g.Explain(ctx, q)
}

// parseQuestion reads a question as it is posted.
func parseQuestion(body []byte) (Question, error) {
	var q Question
	doc, err := strictjson.Decode(body, strictjson.DefaultLimits())
	if err != nil {
		return q, err
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return q, errors.New("want an object")
	}
	text := map[string]*string{
		"method": &q.Method, "path": &q.Target, "body": &q.Body, "org": &q.Org, "key": &q.Key, "team": &q.Team,
	}
	for name, v := range m {
		switch to := text[name]; {
		case to != nil:
			if *to, ok = v.(string); !ok {
				return q, fmt.Errorf("%s: want a string", name)
			}
		case name == "roles":
			list, _ := v.([]any)
			for _, item := range list {
				role, _ := item.(string)
				q.Roles = append(q.Roles, identity.Role(role))
			}
		case name == "header":
			h, _ := v.(map[string]any)
			q.Header = make(http.Header, len(h))
			for field, value := range h {
				text, _ := value.(string)
				q.Header.Set(field, text)
			}
		default:
			return q, fmt.Errorf("unknown member %q", name)
		}
	}
	return q, nil
}
