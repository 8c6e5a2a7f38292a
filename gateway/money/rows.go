package money

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// shown selects the visible parts of a ledger.
type shown struct {
	row.Scoped

	Team     row.Team `query:"team" doc:"only this team"`
	Key      string   `query:"key" doc:"only this key"`
	Kind     string   `query:"kind" doc:"only resources of this kind"`
	Resource string   `query:"resource" doc:"only this resource"`
	GPU      string   `query:"gpu" doc:"only resources with this type of GPU or CPU"`
	DC       string   `query:"dc" doc:"only resources in this data centre"`
	Label    []string `query:"label" doc:"only resources with this label, name=value, or name= for those that have none of the name"`
}

// Rows are the questions of operators about spending, and the changes that they make. A nil Money describes them.
func (m *Money) Rows() []row.Row {
	return slices.Concat(m.ledgerRows(), m.costRows(), m.idleRows())
}

func (m *Money) ledgerRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/spend", Summary: "The ledger of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(m.spend),
			Commands: []row.Command{{Use: "spend show ORG", Short: "Show budgets, spend, and the resources that count", Example: "tollgate spend show acme --team research --watch 5s"}},
		},
		{
			Pattern: "GET /admin/spend/resources", Summary: "Resources that count, in parts", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(m.resources),
			Commands: []row.Command{{Use: "spend resources ORG", Short: "List the resources that count, the dearest first, in parts", Example: "tollgate spend resources acme --search train --sort oldest --limit 20"}},
		},
		{
			Pattern: "POST /admin/spend/reconcile", Summary: "Compare the ledger with the platform", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(m.reconcile),
			Commands: []row.Command{{Use: "spend reconcile ORG", Short: "Compare the ledger with the platform's resources, now", Example: "tollgate spend reconcile acme"}},
		},
		{Pattern: "POST /admin/spend/adopt", Summary: "Give a resource an owner", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(m.adopt)},
		{Pattern: "POST /admin/spend/adopt-team", Summary: "Give everything that a team has to another team", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(m.adoptTeam)},
		m.adjustRow(),
		{
			Pattern: "GET /admin/spend/holds", Summary: "Reservations of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(m.holds),
			Commands: []row.Command{{Use: "spend holds ORG", Short: "Show reservations whose call has not ended, or whose end is not known", Example: "tollgate spend holds acme"}},
		},
		{
			Pattern: "POST /admin/spend/holds/release", Summary: "End a reservation", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(m.release),
			Commands: []row.Command{{Use: "spend holds release ORG ID", Short: "End a reservation whose call has left nothing", Example: "tollgate spend holds release acme 01M84TG8488HTPRJ2EYM7Q01FJ --reason 'the platform made nothing'"}},
		},
	}
}

func (m *Money) spend(ctx context.Context, _ row.Scope, p shown) (*Ledger, error) {
	l, err := m.Show(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	return l, p.keep(l)
}

// snooze leaves out the parts that are not asked for.
func (p *shown) keep(l *Ledger) error {
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
		return unlike(team, r.Team) || unlike(p.Key, r.Key) || unlike(p.Kind, r.Kind) || unlike(p.Resource, r.ID) || unlike(p.GPU, r.GPU) || unlike(p.DC, r.DataCenter)
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

// resourceList is resources as they are answered.
type resourceList struct {
	Resources []Resource `json:"resources"`
	// All is the number of resources that are selected, and PerHour their cost, in USD.
	All     int    `json:"all"`
	PerHour string `json:"perHour"`
	// Next is the parameter cursor of the next list, absent behind the last.
	Next string `json:"next,omitempty"`
}

// listedResources selects resources.
type listedResources struct {
	shown
	row.Paging

	Search string `query:"search" max:"200" doc:"only resources with this text in their id, name, team or key"`
	Sort   string `query:"sort" oneof:"dearest,newest,oldest,name" default:"dearest" doc:"which are first"`
}

func (m *Money) resources(ctx context.Context, s row.Scope, p listedResources) (*resourceList, error) {
	l, err := m.spend(ctx, s, p.shown)
	if err != nil {
		return nil, err
	}
	return p.list(l)
}

// list returns the part of the resources of a ledger that is asked for.
func (p *listedResources) list(l *Ledger) (out *resourceList, err error) {
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(p.Search)) }
	list := slices.DeleteFunc(l.Resources, func(r Resource) bool {
		return p.Search != "" && !has(r.ID) && !has(r.Name) && !has(r.Team) && !has(r.Key)
	})
	slices.SortStableFunc(list, func(a, b Resource) int {
		first := map[string]int{
			"dearest": cmp.Compare(row.Decimal(b.Takes.PerHour), row.Decimal(a.Takes.PerHour)), "newest": b.Since.Compare(a.Since), "oldest": a.Since.Compare(b.Since), "name": cmp.Compare(a.Name, b.Name),
		}[p.Sort]
		return cmp.Or(first, cmp.Compare(a.ID, b.ID))
	})
	var sum float64
	for i := range list {
		sum += row.Decimal(list[i].Takes.PerHour)
	}
	out = &resourceList{All: len(list), PerHour: strconv.FormatFloat(sum, 'f', -1, 64)}
	out.Resources, out.Next, err = row.Page(list, &p.Paging, func(r *Resource) string { return r.ID })
	return out, err
}

// holdList is reservations as they are answered.
type holdList struct {
	Holds []Hold `json:"holds"`
}

func (m *Money) holds(ctx context.Context, _ row.Scope, p row.Scoped) (holdList, error) {
	l, err := m.Show(ctx, string(p.Org))
	if err != nil {
		return holdList{}, err
	}
	return holdList{l.Holds}, nil
}
