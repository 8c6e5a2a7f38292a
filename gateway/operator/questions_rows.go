package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// Rows are the questions of operators about requests that are not made. Those of nil can be read, and not be asked.
func (a *Questions) Rows() []row.Row {
	return []row.Row{
		{Pattern: "POST /admin/explain", Summary: "The course that a request would take", Role: row.Viewer, About: row.OfAsker, Ask: row.Do(a.explainPosted), Body: reflect.TypeFor[Posted](), Fails: []int{http.StatusInternalServerError}},
		{Pattern: "GET /admin/audit", Summary: "The resources of an organisation, judged by its policies", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(a.audit), Fails: []int{http.StatusBadGateway}},
	}
}

func (a *Questions) audit(ctx context.Context, _ row.Scope, p row.Scoped) (*explain.Audit, error) {
	x, err := a.Audit(ctx, string(p.Org))
	if err != nil && !errors.Is(err, row.ErrNoOrg) {
		err = row.RefusedError{Status: http.StatusBadGateway, Reason: err.Error()}
	}
	return x, err
}

// asked is a request that is to be explained, as JSON.
type asked struct{ Question row.Body }

func (a *Questions) explainPosted(ctx context.Context, s row.Scope, p asked) (*explain.Report, error) {
	q, err := parseQuestion(p.Question)
	if err != nil {
		return nil, row.BadRequestError{Reason: err.Error()}
	}
	if q.Org = cmp.Or(q.Org, s.Org); s.Org != "" && q.Org != s.Org {
		return nil, row.BadRequestError{Reason: "org: the token is bound to organisation " + s.Org}
	}
	x, err := a.Explain(ctx, q)
	if _, bad := errors.AsType[row.BadRequestError](err); err != nil && !bad {
		err = row.RefusedError{Status: http.StatusInternalServerError, Reason: err.Error()}
	}
	return x, err
}

// Posted is a question as it is posted.
type Posted struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // with the query
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	Org    string            `json:"org,omitempty"`
	Key    string            `json:"key,omitempty"`
	Team   string            `json:"team,omitempty"`
	Roles  []string          `json:"roles,omitempty"`
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
