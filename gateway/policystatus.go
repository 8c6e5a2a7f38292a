package gateway

import (
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/load"
)

// policyStatus tells how the policies in force are doing.
func (g *Gateway) policyStatus() []admin.PolicyStatus {
	list := g.current.Load().engine.Status()
	out := make([]admin.PolicyStatus, len(list))
	for i, s := range list {
		out[i] = admin.PolicyStatus{Org: s.Org, Revision: s.Revision, Bundle: s.Bundle}
		if !s.Fetched.IsZero() {
			out[i].Fetched = s.Fetched.UTC().Format(time.RFC3339)
		}
		if s.Err != nil {
			out[i].Fault = s.Err.Error()
		}
		if o := g.org(s.Org); o != nil {
			out[i].Unlisted = unlisted(o, g.catalog.Last(s.Org))
		}
	}
	return out
}

// unlisted tells which names in an organisation's policies a list of the platform's
// catalog, nil if none was read, does not have.
func unlisted(o *settings.Org, list *catalog.Snapshot) []string {
	var out []string
	for _, v := range load.Values(o.Policies.Policies) {
		if meant, lacks := list.Lacks(v.Format, v.Text); lacks {
			line := fmt.Sprintf("%s: %q is not in the platform's catalog", v.Path, v.Text)
			if meant != "" {
				line += fmt.Sprintf(", did you mean %q?", meant)
			}
			out = append(out, line)
		}
	}
	return out
}

// tellUnlisted logs the same.
func (g *Gateway) tellUnlisted(o *settings.Org, list *catalog.Snapshot) {
	for _, line := range unlisted(o, list) {
		g.deps.Logger.Warn("a policy names what the platform does not have", "org", o.ID, "parameter", line)
	}
}
