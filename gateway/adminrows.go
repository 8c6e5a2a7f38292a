package gateway

import (
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// AdminRows returns the rows of any gateway for their descriptions. None of them can be asked.
func AdminRows() []row.Row { return admin.Deps{Shapes: adminShapes()}.Rows() }

func adminShapes() admin.Shapes {
	return admin.Shapes{Report: explain.Report{}, Summary: explain.Summary{}, Audit: explain.Audit{}, Approval: approval.Record{}, Key: settings.KeyRecord{}, Made: keyAnswer{}}
}

// tenantsOf are the organisations that operators can ask about.
func tenantsOf(c *settings.Config) []row.Tenant {
	out := make([]row.Tenant, len(c.Orgs))
	for i := range c.Orgs {
		o := &c.Orgs[i]
		out[i] = row.Tenant{ID: o.ID, Teams: teamIDs(o), Policies: []string{}}
		for n := range o.Policies.Policies {
			out[i].Policies = append(out[i].Policies, o.Policies.Policies[n].Policy)
		}
	}
	return out
}

func teamIDs(o *settings.Org) []string {
	ids := make([]string, len(o.Teams))
	for i := range o.Teams {
		ids[i] = o.Teams[i].ID
	}
	return ids
}
