package ui

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/audit"
)

// The audit log says in words what happened and who did it.
func TestAuditWords(t *testing.T) {
	t.Parallel()
	v := hostileVisit("audit")
	v.org = "acme"
	for _, tt := range []struct {
		change        audit.Change
		by, what, sub string
	}{
		{
			audit.Change{Record: audit.Record{Who: "unauthenticated", Operation: "POST /admin/approvals/grant", Query: "by=mara&for=1h&id=ap-1&org=acme&reason=the+paper"}},
			"mara (not signed in)", "Approved request ap-1", "for: 1h, reason: the paper",
		},
		{
			audit.Change{Record: audit.Record{Who: "ada", Operation: "POST /admin/keys/create", Query: "org=acme&spec=%7B%22id%22%3A%22nightly%22%2C%22roles%22%3A%5B%22viewer%22%5D%7D"}},
			"ada", "Created key nightly", "roles: viewer",
		},
		{
			audit.Change{Record: audit.Record{Who: "unauthenticated", Operation: "POST /admin/limits/reset", Query: "org=acme&scope=key%3Aann"}},
			"Not signed in", "Reset rate limits of key ann", "",
		},
		{
			audit.Change{Record: audit.Record{Who: "ada", Operation: "POST /admin/approvals/grant", Query: "for=1h&id=ap-1&org=acme", Kind: "approval", Resource: "ap-1", Summary: "4 x NVIDIA L4 for team research, at most 1.72274 USD per hour"}},
			"ada", "Approved 4 × NVIDIA L4 for team research, at most $1.72 per hour", "for: 1h",
		},
		{
			audit.Change{Record: audit.Record{Operation: "self.approvals.deny", Query: "id=ap-1&org=acme&reason=no", Kind: "approval", Resource: "ap-1", Summary: "4 x NVIDIA L4 for key ann"}},
			"", "Denied 4 × NVIDIA L4 for key ann", "reason: no",
		},
		{audit.Change{Record: audit.Record{Operation: "deletePod", Kind: "pod", Verb: "delete"}}, "", "Deleted pod", "deletePod"},
		{audit.Change{Record: audit.Record{Who: "ada", Operation: "GET /admin/orgs", Query: "x=1"}}, "ada", "GET /admin/orgs", "x: 1"},
	} {
		c := actionCell(v, &tt.change)
		if diff := cmp.Diff([]string{tt.by, tt.what, tt.sub}, []string{actor(&tt.change), c.Text, c.Sub}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.change.Operation, diff)
		}
	}
}
