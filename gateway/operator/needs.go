package operator

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// naming matches the last element of the name of a parameter or member that contains a resource ID.
var naming = regexp.MustCompile(`(^|\.|[a-z])([iI]ds?|registry|[vV]olumes)(\[\])?$`)

// RequiredChanges describes for maintainers which parts of the gateway must be edited because of a difference between two versions of the
// platform's API description.
func RequiredChanges(d schema.Difference, c schema.Change) string {
	row, _ := operation.Lookup(d.Operation)
	var needs []string
	need := func(applies bool, what string) {
		if applies {
			needs = append(needs, what)
		}
	}
	body, added := c.In == schema.InBody, c.What == schema.New
	switch {
	case c.In == schema.InOperation && added:
		needs = append(needs, "schema: describe it", "a spec in policies/operation with kind and verb")
		need(d.Method == http.MethodPost, "price rule: its cost, if it creates or starts something")
		need(strings.Contains(d.Path, "{"), "ownership: check that the id in the path has the kind of the spec")
		need(d.Method != http.MethodGet, "policies: its resulting state, and library policies for its members")
	case c.In == schema.InOperation && c.What == schema.Gone:
		needs = append(needs, "remove its description and its spec")
	case c.What == schema.Gone:
		needs = append(needs, "schema: remove it, unless the gateway accepts it on purpose")
	case c.In == schema.InStatus:
		needs = append(needs, "schema: declare it; check how the error is mapped for legacy callers")
	default:
		needs = append(needs, "schema: "+map[bool]string{true: "describe it", false: "change the constraint"}[added])
		need(added && c.In == schema.InQuery && c.Name == "cursor", "paging: the list member in the spec")
		need(added && (body || c.In == schema.InQuery || c.In == schema.InHeader) && naming.MatchString(c.Name), "ownership: a reference in policies/operation")
		need(body && row.Price != operation.PriceFree && row.Price != "", "price rule: whether it changes the cost")
		need(added && body, "policies: its effect on the resulting state, and library policies for it")
	}
	return strings.Join(needs, "; ")
}
