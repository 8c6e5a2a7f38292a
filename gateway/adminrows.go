package gateway

import (
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// AdminRows returns what operators can ask any gateway, for those who ask: none of the rows can answer.
func AdminRows() []row.Row { return admin.Deps{Shapes: adminShapes()}.Rows() }

func adminShapes() admin.Shapes {
	return admin.Shapes{Report: explain.Report{}, Summary: explain.Summary{}, Audit: explain.Audit{}, Approval: approval.Record{}, Key: settings.KeyRecord{}, Made: keyAnswer{}}
}

// tenants are the organisations that operators can ask about.
func (g *Gateway) tenants() []row.Tenant {
	orgs := g.current.Load().config.Orgs
	out := make([]row.Tenant, len(orgs))
	for i := range orgs {
		o := &orgs[i]
		out[i] = row.Tenant{ID: o.ID, Teams: make([]string, len(o.Teams)), Policies: []string{}}
		for n := range o.Teams {
			out[i].Teams[n] = o.Teams[n].ID
		}
		for n := range o.Policies.Policies {
			out[i].Policies = append(out[i].Policies, o.Policies.Policies[n].Policy)
		}
	}
	return out
}
