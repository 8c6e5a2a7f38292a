package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// Endpoints returns the endpoints for explanations. A nil receiver returns endpoints that can be listed but not called.
func (a *Explainer) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "POST /admin/explain", Summary: "Predicted outcome of a request", Role: adminapi.Viewer, Subject: adminapi.SubjectCaller,
			Handler: adminapi.HandlerFor(a.explainPosted), Body: reflect.TypeFor[ExplainBody](),
			ErrorStatuses: []int{http.StatusInternalServerError},
		},
		{
			Pattern: "GET /admin/audit", Summary: "Resources of an organisation that violate its policies", AuditsReads: true,
			Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(a.audit), ErrorStatuses: []int{http.StatusBadGateway},
		},
	}
}

func (a *Explainer) audit(ctx context.Context, _ adminapi.Principal, p adminapi.OrgParam) (*explain.Audit, error) {
	x, err := a.Audit(ctx, string(p.Org))
	if err != nil && !errors.Is(err, adminapi.ErrUnknownOrg) {
		err = adminapi.RefusedError{Status: http.StatusBadGateway, Reason: err.Error()}
	}
	return x, err
}

// asked is the JSON of an ExplainBody.
type asked struct{ Question adminapi.Body }

func (a *Explainer) explainPosted(ctx context.Context, s adminapi.Principal, p asked) (*explain.Report, error) {
	q, err := parseQuestion(p.Question)
	if err != nil {
		return nil, adminapi.BadRequestError{Reason: err.Error()}
	}
	if q.Org = cmp.Or(q.Org, s.Org); s.Org != "" && q.Org != s.Org {
		return nil, adminapi.BadRequestError{Reason: "org: the token is bound to organisation " + s.Org}
	}
	x, err := a.Explain(ctx, q)
	if _, bad := errors.AsType[adminapi.BadRequestError](err); err != nil && !bad {
		err = adminapi.RefusedError{Status: http.StatusInternalServerError, Reason: err.Error()}
	}
	return x, err
}

// ExplainBody is the body of a request for an explanation.
type ExplainBody struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // including the query
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	Org    string            `json:"org,omitempty"`
	Key    string            `json:"key,omitempty"`
	Team   string            `json:"team,omitempty"`
	Roles  []string          `json:"roles,omitempty"`
}

// parseQuestion decodes an ExplainBody.
func parseQuestion(body []byte) (ExplainRequest, error) {
	var q ExplainRequest
	doc, err := strictjson.Decode(body, strictjson.DefaultLimits())
	if err != nil {
		return q, err
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return q, errors.New("body must be an object")
	}
	text := map[string]*string{
		"method": &q.Method, "path": &q.Target, "body": &q.Body, "org": &q.Org, "key": &q.Key, "team": &q.Team,
	}
	for name, v := range m {
		switch to := text[name]; {
		case to != nil:
			if *to, ok = v.(string); !ok {
				return q, fmt.Errorf("%s: must be a string", name)
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
