package money

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// shown selects the parts of a ledger to return.
type shown struct {
	adminapi.OrgParam

	Team     adminapi.Team `query:"team" doc:"only this team"`
	Key      string        `query:"key" doc:"only this key"`
	Kind     string        `query:"kind" doc:"only resources of this kind"`
	Resource string        `query:"resource" doc:"only this resource"`
	GPU      string        `query:"gpu" doc:"only resources with this GPU or CPU type"`
	DC       string        `query:"dc" doc:"only resources in this data centre"`
	Label    []string      `query:"label" doc:"only resources with this label: name=value, or name= for resources without the label"`
}

// Endpoints returns the admin endpoints for spending. If m is nil, the endpoints can be listed but not called.
func (m *Money) Endpoints() []adminapi.Endpoint {
	return slices.Concat(m.ledgerRows(), m.costRows(), []adminapi.Endpoint{m.compareRow(), m.budgetRow()}, m.idleRows())
}

func (m *Money) ledgerRows() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/spend", Summary: "Ledger of an organisation", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(m.spend),
			Commands: []adminapi.Command{{
				Use: "spend show ORG", Heading: "Spend", Group: "Show budgets and costs, and compare the ledger with the platform",
				Short: "Show the budgets, costs and resources of an organisation", Example: "tollgate spend show acme --team research --watch 5s",
			}},
		},
		{
			Pattern: "GET /admin/spend/resources", Summary: "One page of the resources that count against budgets", Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, AuditsReads: true, Handler: adminapi.HandlerFor(m.resources),
			Commands: []adminapi.Command{{
				Use: "spend resources ORG", Short: "List resources that count against budgets, most expensive first",
				Example: "tollgate spend resources acme --search train --sort oldest --limit 20",
			}},
		},
		{
			Pattern: "POST /admin/spend/reconcile", Summary: "Reconcile the ledger with the platform", Role: adminapi.Operator,
			Subject: adminapi.SubjectOrg, Mutates: true, Handler: adminapi.HandlerFor(m.reconcile), Commands: []adminapi.Command{
				{Use: "spend reconcile ORG", Short: "Reconcile the ledger with the platform now", Example: "tollgate spend reconcile acme"},
			},
		},
		{
			Pattern: "POST /admin/spend/adopt", Summary: "Assign a resource to an owner", Role: adminapi.Operator, Subject: adminapi.SubjectOrg,
			Mutates: true, Handler: adminapi.HandlerFor(m.adopt),
		},
		{
			Pattern: "POST /admin/spend/adopt-team", Summary: "Move all resources and costs of a team to another team",
			Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Mutates: true, Handler: adminapi.HandlerFor(m.adoptTeam),
		},
		m.adjustRow(),
		{
			Pattern: "GET /admin/spend/holds", Summary: "Reservations of an organisation", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(m.holds),
			Commands: []adminapi.Command{{
				Use: "spend holds ORG", Short: "List open and in-flight reservations",
				Example: "tollgate spend holds acme",
			}},
		},
		{
			Pattern: "POST /admin/spend/holds/release", Summary: "End a reservation", Role: adminapi.Operator, Subject: adminapi.SubjectOrg,
			Mutates: true, Handler: adminapi.HandlerFor(m.release),
			Commands: []adminapi.Command{{
				Use: "spend holds release ORG ID", Short: "Release the reservation of a call that created nothing",
				Example: "tollgate spend holds release acme 01M84TG8488HTPRJ2EYM7Q01FJ --reason 'the platform made nothing'",
			}},
		},
	}
}

func (m *Money) spend(ctx context.Context, _ adminapi.Principal, p shown) (*Ledger, error) {
	l, err := m.Show(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	return l, p.apply(l)
}

// apply removes the parts that are not selected.
func (p *shown) apply(l *Ledger) error {
	labels := make(map[string]string, len(p.Label))
	for _, label := range p.Label {
		name, value, err := cutLabel(label)
		if err != nil {
			return err
		}
		labels[name] = value
	}
	unlike := func(asked, value string) bool { return asked != "" && asked != value }
	team := string(p.Team)
	l.Resources = slices.DeleteFunc(l.Resources, func(r Resource) bool {
		for name, value := range labels {
			if r.Labels[name] != value {
				return true
			}
		}
		return unlike(team, r.Team) || unlike(p.Key, r.Key) || unlike(p.Kind, r.Kind) || unlike(p.Resource, r.ID) ||
			unlike(p.GPU, r.GPU) || unlike(p.DC, r.DataCenter)
	})
	if team == "" && p.Key == "" {
		return nil
	}
	l.Scopes = slices.DeleteFunc(l.Scopes, func(b Balance) bool {
		return (team == "" || b.Scope != "team "+team) && (p.Key == "" || b.Scope != "key "+p.Key)
	})
	l.Holds = slices.DeleteFunc(l.Holds, func(h Hold) bool { return unlike(team, h.Team) || unlike(p.Key, h.Key) })
	return nil
}

// ResourceList is one page of resources.
type ResourceList struct {
	Resources []Resource `json:"resources"`
	// All is the number of matching resources on all pages. PerHour is their total hourly cost in USD.
	All     int    `json:"all"`
	PerHour string `json:"perHour"`
	// Complete and Loss describe the state of the ledger.
	Complete bool  `json:"complete"`
	Loss     *Loss `json:"loss,omitempty"`
	// Next is the cursor parameter of the next page; absent on the last page.
	Next string `json:"next,omitempty"`
}

// listedResources holds the parameters of a list of resources.
type listedResources struct {
	shown
	adminapi.Paging

	Search string `query:"search" max:"200" doc:"only resources whose id, name, team or key contains this text"`
	Sort   string `query:"sort" oneof:"cost,newest,oldest,name" default:"cost" doc:"sort order"`
}

func (m *Money) resources(ctx context.Context, _ adminapi.Principal, p listedResources) (*ResourceList, error) {
	l, err := m.Unscoped(ctx, string(p.Org))
	if err == nil {
		err = p.apply(l)
	}
	if err != nil {
		return nil, err
	}
	return p.list(l)
}

// rank returns the position of a resource in the requested order.
func (p *listedResources) rank(r *Resource) string {
	switch p.Sort {
	case "newest":
		return adminapi.Descending(r.Since.UnixMilli()) + r.ID
	case "oldest":
		return adminapi.Descending(-r.Since.UnixMilli()) + r.ID
	case "name":
		return r.Name + "\x00" + r.ID
	}
	return adminapi.Descending(micro(r.Takes.PerHour)) + r.ID
}

// list returns the requested page of a ledger's resources.
func (p *listedResources) list(l *Ledger) (out *ResourceList, err error) {
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(p.Search)) }
	list := slices.DeleteFunc(l.Resources, func(r Resource) bool {
		return p.Search != "" && !has(r.ID) && !has(r.Name) && !has(r.Team) && !has(r.Key)
	})
	var sum float64
	for i := range list {
		sum += adminapi.Decimal(list[i].Takes.PerHour)
	}
	out = &ResourceList{Complete: l.Complete, Loss: l.Loss, All: len(list), PerHour: usd(int64(math.Round(sum * 1e6)))}
	out.Resources, out.Next, err = adminapi.SortedPage(list, &p.Paging, p.rank)
	return out, err
}

// HoldList contains the reservations of an organisation that have not ended.
type HoldList struct {
	Holds []Hold `json:"holds"`
}

func (m *Money) holds(ctx context.Context, _ adminapi.Principal, p adminapi.OrgParam) (HoldList, error) {
	l, err := m.Unscoped(ctx, string(p.Org))
	if err != nil {
		return HoldList{}, err
	}
	return HoldList{l.Holds}, nil
}
