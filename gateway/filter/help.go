package filter

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// Help adds a contact to refusals, with a link to the decision's explanation. The zero value adds nothing.
type Help struct {
	// Contact is the contact for callers whose organisation does not set one.
	Contact problem.Contact
	// Pages is the URL prefix of the pages that explain a decision, to which the decision ID is appended, or "".
	Pages string
}

// of returns the contact for the caller, with the URL of the decision page if there is one.
func (h *Help) of(ex *Exchange) problem.Contact {
	c := h.Contact
	if ex.Tenant != nil {
		c = cmp.Or(ex.Tenant.Contact, c)
	}
	if c.Text != "" && h.Pages != "" && ex.DecisionID != "" {
		c.Page = h.Pages + ex.DecisionID
	}
	return c
}

// onProblem adds the contact to a problem.
func (h *Help) onProblem(ex *Exchange, p *problem.Problem) {
	if p.Contact = h.of(ex); p.Contact.Text != "" {
		p.Detail = strings.TrimRight(p.Detail, ".") + "; for help, contact " + p.Contact.Text + " and mention " + cmp.Or(p.Page, ex.DecisionID)
	}
}

// onLegacy adds the contact to a refusal in a legacy dialect, whose error texts are fixed: as members of the v1 error object, or in
// the extensions of GraphQL errors (GraphQL specification, section 7.1.2).
func (h *Help) onLegacy(ex *Exchange) {
	contact := h.of(ex)
	a := ex.Response
	if contact.Text == "" || ex.Progress.Nested || ex.Dialect != route.V1 && ex.Dialect != route.GraphQL || a.Stream != nil || len(a.Body) == 0 {
		return
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	body, ok := doc.(map[string]any)
	if err != nil || !ok {
		return
	}
	switch failed, _ := body["errors"].([]any); {
	case ex.Dialect == route.V1 && a.Status >= http.StatusBadRequest:
		contact.AddTo(body)
	case ex.Dialect == route.GraphQL && len(failed) > 0:
		for _, e := range failed {
			if e, ok := e.(map[string]any); ok {
				extensions, _ := e["extensions"].(map[string]any)
				if extensions == nil {
					extensions = make(map[string]any)
				}
				contact.AddTo(extensions)
				e["extensions"] = extensions
			}
		}
	default:
		return
	}
	if text, err := strictjson.Append(nil, doc); err == nil {
		a.Body = text
	}
}
