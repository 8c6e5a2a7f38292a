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

// ExplainBody asks for a prediction of the outcome of a caller's request. It contains the ID of the caller's key but not the key itself.
// Operators can therefore predict requests of any caller. A prediction sends only read requests to the platform.
type ExplainBody struct {
	Method string            `json:"method"`
	Path   string            `json:"path"` // including the query
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	// Key is the ID of a configured key. Org is its organisation; it can be omitted if only one organisation has a key with that ID.
	Org string `json:"org,omitempty"`
	Key string `json:"key,omitempty"`
	// Team and Roles describe a caller without a key.
	Team  string   `json:"team,omitempty"`
	Roles []string `json:"roles,omitempty"`
	// Offline disables reads from the platform and from the shared store.
	Offline bool `json:"-"`
}

// parseQuestion decodes an ExplainBody.
func parseQuestion(body []byte) (*ExplainBody, error) {
	q := &ExplainBody{Header: map[string]string{}}
	doc, err := strictjson.Decode(body, strictjson.DefaultLimits())
	if err != nil {
		return nil, err
	}
	m, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("body must be an object")
	}
	text := map[string]*string{
		"method": &q.Method, "path": &q.Path, "body": &q.Body, "org": &q.Org, "key": &q.Key, "team": &q.Team,
	}
	for name, v := range m {
		switch to := text[name]; {
		case to != nil:
			if *to, ok = v.(string); !ok {
				return nil, fmt.Errorf("%s: must be a string", name)
			}
		case name == "roles":
			list, _ := v.([]any)
			for _, item := range list {
				role, _ := item.(string)
				q.Roles = append(q.Roles, role)
			}
		case name == "header":
			h, _ := v.(map[string]any)
			for field, value := range h {
				q.Header[field], _ = value.(string)
			}
		default:
			return nil, fmt.Errorf("unknown member %q", name)
		}
	}
	return q, nil
}
