package admin

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Spend shows the ledger of an organisation and makes it follow the platform. All
// return row.ErrNoOrg for an organisation that is not configured, and a BadRequestError
// for one without budgets.
type Spend interface {
	Show(ctx context.Context, org string) (*Ledger, error)
	Reconcile(ctx context.Context, org string) (*Reconciled, error)
	// Adopt gives a resource to a team, or to a key and its team, and returns its former
	// owner; a BadRequestError names a thing that does not exist.
	Adopt(ctx context.Context, org, resource, team, key string) (*Adopted, error)
	// AdoptTeam gives everything that a team has, or a key in a team, to another team; a BadRequestError names a team that
	// does not exist.
	AdoptTeam(ctx context.Context, org, from, to, key string) (*AdoptedTeam, error)
	// Release ends a reservation without its call; a BadRequestError says why it is not
	// to be ended.
	Release(ctx context.Context, org, hold, reason string) (*Hold, error)
	// Adjust changes the cost that a scope has accrued; a BadRequestError says why it must not be changed so.
	Adjust(ctx context.Context, org string, a Adjustment) (*AdjustedAccrual, error)
	// History returns the costs of resources; a BadRequestError names the fault
	// of the query.
	History(ctx context.Context, org string, q CostQuery) (*Costs, error)
	Forecast(ctx context.Context, org string) (*Forecasts, error)
	// Idle lists resources that cost money and do not work.
	Idle(ctx context.Context, org string) (*IdleList, error)
	// Keep leaves a resource alone for a time although it is idle; 0 ends that.
	Keep(ctx context.Context, org, resource string, d time.Duration) (*Kept, error)
}

// Adopted says whose a resource was and is.
type Adopted struct {
	Resource string `json:"resource"`
	Was      string `json:"was"`
	Owner    string `json:"owner"`
}

// AdoptedTeam says what a team got of another one.
type AdoptedTeam struct {
	From string `json:"from"`
	To   string `json:"to"`
	Key  string `json:"key,omitempty"`
	// Resources is how many moved. Pending is how many resources and reservations stay, because calls about them are in
	// progress.
	Resources int `json:"resources"`
	Pending   int `json:"pending"`
	// Day and Month are the accrued costs that moved, in USD.
	Day   string `json:"day"`
	Month string `json:"month"`
}

// Ledger is the account of an organisation.
type Ledger struct {
	// Complete is false while the ledger has to be rebuilt: nothing that raises cost
	// is admitted then.
	Complete bool `json:"complete"`
	// Loss is the last one.
	Loss      *Loss      `json:"loss,omitempty"`
	Scopes    []Balance  `json:"scopes"`
	Resources []Resource `json:"resources"`
	Holds     []Hold     `json:"holds"`
}

// Loss lists the records that the store has lost of a ledger, why, and when the ledger was complete
// again. Returned resources have their owner back, Unowned ones have none.
type Loss struct {
	Lost     string     `json:"lost"`
	Reason   string     `json:"reason"`
	At       time.Time  `json:"at"`
	Rebuilt  *time.Time `json:"rebuilt,omitempty"`
	Returned int        `json:"returned"`
	Unowned  int        `json:"unowned"`
}

// Amounts are the amounts in use: USD per hour, counts, and USD of runs.
type Amounts struct {
	PerHour  string `json:"perHour"`
	Runs     string `json:"runs"`
	GPUs     int64  `json:"gpus"`
	Pods     int64  `json:"pods"`
	Workers  int64  `json:"workers"`
	VolumeGB int64  `json:"volumeGb"`
}

// Balance is the account of one scope. Day and Month are USD.
type Balance struct {
	Scope     string            `json:"scope"`
	Committed Amounts           `json:"committed"`
	Reserved  Amounts           `json:"reserved"`
	Day       string            `json:"day"`
	Month     string            `json:"month"`
	Limits    map[string]string `json:"limits"`
	Budgets   []Budget          `json:"budgets"`
}

// Budget is how full one ceiling of a scope is, in USD or a count. Left is the amount that a call
// may still take.
type Budget struct {
	Name     string `json:"name"`
	Limit    string `json:"limit"`
	Used     string `json:"used"`
	Reserved string `json:"reserved"`
	Left     string `json:"left"`
	// UsedUp is the day, in the organisation's zone, on which a budget of a period is
	// expected to be used up, absent if the period ends first.
	UsedUp string `json:"usedUp,omitempty"`
	// Over is by how much runs under way can pass it at most, absent if they cannot.
	Over string `json:"over,omitempty"`
}

// Resource is one that counts. Without a team and a key, it is the organisation's.
type Resource struct {
	ID    string    `json:"id"`
	Kind  string    `json:"kind"`
	Name  string    `json:"name,omitempty"`
	Team  string    `json:"team,omitempty"`
	Key   string    `json:"key,omitempty"`
	Since time.Time `json:"since"`
	Takes Amounts   `json:"takes"`
	GPU   string    `json:"gpu,omitempty"`
	// DataCenter is where it was asked for, or was found.
	DataCenter string            `json:"dc,omitempty"`
	Decision   string            `json:"decision,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Hold is a reservation. Noted is one whose call is under way with a gateway; the resource of an
// open one is looked for until a time.
type Hold struct {
	ID       string    `json:"id"`
	State    string    `json:"state"`
	Kind     string    `json:"kind"`
	Resource string    `json:"resource,omitempty"`
	Name     string    `json:"name,omitempty"`
	Team     string    `json:"team,omitempty"`
	Key      string    `json:"key,omitempty"`
	Gateway  string    `json:"gateway,omitempty"`
	Since    time.Time `json:"since"`
	// Age is in seconds, by the ledger's clock.
	Age       float64    `json:"age"`
	Open      bool       `json:"open"`
	Until     *time.Time `json:"until,omitempty"`
	Reserves  Amounts    `json:"reserves"`
	Operation string     `json:"operation"`
	Decision  string     `json:"decision"`
}

// Reconciled is the result of a comparison with the platform's lists: resources made
// or removed without the gateway, resources that take another amount than recorded, and holds
// whose call was found to have been carried out, not to have been, or is still
// looked for.
type Reconciled struct {
	Resources int  `json:"resources"`
	Adopted   int  `json:"adopted"`
	Removed   int  `json:"removed"`
	Changed   int  `json:"changed"`
	Found     int  `json:"found"`
	Released  int  `json:"released"`
	Open      int  `json:"open"`
	Rebuilt   bool `json:"rebuilt"`
}

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

func (d Deps) spendRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/spend", Summary: "The ledger of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.spend),
			Commands: []row.Command{{Use: "spend show ORG", Short: "Show budgets, spend, and the resources that count", Example: "tollgate spend show acme --team research --watch 5s"}},
		},
		{
			Pattern: "GET /admin/spend/resources", Summary: "Resources that count, in parts", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(d.resources),
			Commands: []row.Command{{Use: "spend resources ORG", Short: "List the resources that count, the dearest first, in parts", Example: "tollgate spend resources acme --search train --sort oldest --limit 20"}},
		},
		{
			Pattern: "POST /admin/spend/reconcile", Summary: "Compare the ledger with the platform", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.reconcile),
			Commands: []row.Command{{Use: "spend reconcile ORG", Short: "Compare the ledger with the platform's resources, now", Example: "tollgate spend reconcile acme"}},
		},
		{Pattern: "POST /admin/spend/adopt", Summary: "Give a resource an owner", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.adopt)},
		{Pattern: "POST /admin/spend/adopt-team", Summary: "Give everything that a team has to another team", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.adoptTeam)},
		d.adjustRow(),
		{
			Pattern: "GET /admin/spend/holds", Summary: "Reservations of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.holds),
			Commands: []row.Command{{Use: "spend holds ORG", Short: "Show reservations whose call has not ended, or whose end is not known", Example: "tollgate spend holds acme"}},
		},
		{
			Pattern: "POST /admin/spend/holds/release", Summary: "End a reservation", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.releaseHold),
			Commands: []row.Command{{Use: "spend holds release ORG ID", Short: "End a reservation whose call has left nothing", Example: "tollgate spend holds release acme 01M84TG8488HTPRJ2EYM7Q01FJ --reason 'the platform made nothing'"}},
		},
	}
}

func (d Deps) spend(ctx context.Context, _ row.Scope, p shown) (*Ledger, error) {
	l, err := d.Spend.Show(ctx, string(p.Org))
	if err != nil {
		return nil, err
	}
	return l, p.keep(l)
}

// keep leaves out the parts that are not asked for.
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

func (d Deps) resources(ctx context.Context, s row.Scope, p listedResources) (*resourceList, error) {
	l, err := d.spend(ctx, s, p.shown)
	if err != nil {
		return nil, err
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(p.Search)) }
	list := slices.DeleteFunc(l.Resources, func(r Resource) bool {
		return p.Search != "" && !has(r.ID) && !has(r.Name) && !has(r.Team) && !has(r.Key)
	})
	slices.SortStableFunc(list, func(a, b Resource) int {
		first := map[string]int{
			"dearest": cmp.Compare(decimal(b.Takes.PerHour), decimal(a.Takes.PerHour)), "newest": b.Since.Compare(a.Since), "oldest": a.Since.Compare(b.Since), "name": cmp.Compare(a.Name, b.Name),
		}[p.Sort]
		return cmp.Or(first, cmp.Compare(a.ID, b.ID))
	})
	var sum float64
	for i := range list {
		sum += decimal(list[i].Takes.PerHour)
	}
	out := &resourceList{All: len(list), PerHour: strconv.FormatFloat(sum, 'f', -1, 64)}
	out.Resources, out.Next, err = row.Page(list, &p.Paging, func(r *Resource) string { return r.ID })
	return out, err
}

// holdList is reservations as they are answered.
type holdList struct {
	Holds []Hold `json:"holds"`
}

func (d Deps) holds(ctx context.Context, _ row.Scope, p row.Scoped) (holdList, error) {
	l, err := d.Spend.Show(ctx, string(p.Org))
	if err != nil {
		return holdList{}, err
	}
	return holdList{l.Holds}, nil
}

// ending is a reservation to be ended.
type ending struct {
	row.Scoped

	ID     string `query:"id,required" doc:"id of a reservation"`
	Reason string `query:"reason,required" max:"500" doc:"why, for the audit log"`
}

func (d Deps) releaseHold(ctx context.Context, _ row.Scope, p ending) (*Hold, error) {
	return d.Spend.Release(ctx, string(p.Org), p.ID, p.Reason)
}

// adopting is a resource and its next owner.
type adopting struct {
	row.Scoped

	ID   string   `query:"id,required" doc:"id of a resource"`
	Team row.Team `query:"team" doc:"id of the team"`
	Key  string   `query:"key" doc:"id of the key; its team is the owner, too"`
}

func (d Deps) adopt(ctx context.Context, _ row.Scope, p adopting) (*Adopted, error) {
	return d.Spend.Adopt(ctx, string(p.Org), p.ID, string(p.Team), p.Key)
}

// adoptingTeam is a team, which may be configured no longer, and its successor.
type adoptingTeam struct {
	row.Scoped

	From row.PastTeam `query:"from_team,required" doc:"id of the team that gives, also one that is configured no longer"`
	To   row.Team     `query:"to_team,required" doc:"id of the team that gets everything"`
	Key  string       `query:"key" doc:"only the resources of this key, and what it has accrued"`
}

func (d Deps) adoptTeam(ctx context.Context, _ row.Scope, p adoptingTeam) (*AdoptedTeam, error) {
	return d.Spend.AdoptTeam(ctx, string(p.Org), string(p.From), string(p.To), p.Key)
}

func (d Deps) reconcile(ctx context.Context, _ row.Scope, p row.Scoped) (*Reconciled, error) {
	done, err := d.Spend.Reconcile(ctx, string(p.Org))
	if err != nil {
		d.Logger.WarnContext(ctx, "a ledger could not be reconciled with the platform", "error", err.Error())
		return nil, err
	}
	return done, nil
}
