package filter

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// Help adds a contact line to refusals, with a link to the decision's explanation. The zero Help adds nothing.
type Help struct {
	// Contact is the contact line for callers whose organisation does not set one, or "".
	Contact string
	// Pages is the URL prefix of the pages that explain a decision, to which the decision ID is appended, or "".
	Pages string
}

// of returns the contact line for the caller and the URL of the decision page. Either may be "".
func (h *Help) of(ex *Exchange) (contact, page string) {
	contact = h.Contact
	if ex.Tenant != nil {
		contact = cmp.Or(ex.Tenant.Contact, contact)
	}
	if contact != "" && h.Pages != "" && ex.DecisionID != "" {
		page = h.Pages + ex.DecisionID
	}
	return contact, page
}

// onProblem adds the contact line to a problem.
func (h *Help) onProblem(ex *Exchange, p *problem.Problem) {
	if p.Contact, p.Page = h.of(ex); p.Contact != "" {
		p.Detail = strings.TrimRight(p.Detail, ".") + "; for help, contact " + p.Contact + " and mention " + cmp.Or(p.Page, ex.DecisionID)
	}
}

// onLegacy adds the contact line to a refusal in a legacy dialect, whose error texts are fixed: as members of the v1 error object, or in
// the extensions of GraphQL errors (GraphQL specification, section 7.1.2).
func (h *Help) onLegacy(ex *Exchange) {
	contact, page := h.of(ex)
	a := ex.Response
	if contact == "" || ex.Progress.Nested || ex.Dialect != route.V1 && ex.Dialect != route.GraphQL || a.Stream != nil || len(a.Body) == 0 {
		return
	}
	doc, err := strictjson.DecodeLenient(a.Body)
	body, ok := doc.(map[string]any)
	if err != nil || !ok {
		return
	}
	add := func(to map[string]any) {
		if to["contact"] = contact; page != "" {
			to["decision_url"] = page
		}
	}
	switch failed, _ := body["errors"].([]any); {
	case ex.Dialect == route.V1 && a.Status >= http.StatusBadRequest:
		add(body)
	case ex.Dialect == route.GraphQL && len(failed) > 0:
		for _, e := range failed {
			if e, ok := e.(map[string]any); ok {
				extensions, _ := e["extensions"].(map[string]any)
				if extensions == nil {
					extensions = make(map[string]any)
				}
				add(extensions)
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
