package operator

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// naming matches the last name of a parameter or member that holds the id of a resource.
var naming = regexp.MustCompile(`(^|\.|[a-z])([iI]ds?|registry|[vV]olumes)(\[\])?$`)

// RequiredChanges returns, in words for a maintainer, what a change of the platform's description requires of the gateway.
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
		needs = append(needs, "schema: describe it", "a row in policies/operation with kind and verb")
		need(d.Method == http.MethodPost, "price rule: what it costs, if it creates or starts something")
		need(strings.Contains(d.Path, "{"), "ownership: the id in the path belongs to the kind of the row")
		need(d.Method != http.MethodGet, "policies: the state that it leads to, and rules of the library for its members")
	case c.In == schema.InOperation:
		needs = append(needs, "remove its description and its row")
	case c.What == schema.Gone:
		needs = append(needs, "schema: remove it, unless the gateway accepts it on purpose")
	case c.In == schema.InStatus:
		needs = append(needs, "schema: declare it; check how the error is mapped for legacy callers")
	default:
		needs = append(needs, "schema: "+map[bool]string{true: "describe it", false: "change the constraint"}[added])
		need(added && c.In == schema.InQuery && c.Name == "cursor", "paging: the member of the list in the row")
		need(added && c.In != schema.InResponse && naming.MatchString(c.Name), "ownership: a reference in policies/operation")
		need(body && row.Price != operation.PriceFree && row.Price != "", "price rule: whether it changes the cost")
		need(added && body, "policies: the state that it leads to, and rules of the library for it")
	}
	return strings.Join(needs, "; ")
}
