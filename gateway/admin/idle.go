package admin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// IdleList lists resources that cost money and did not work at the last look; At is nil if there
// was none.
type IdleList struct {
	At        *time.Time     `json:"at"`
	Resources []IdleResource `json:"resources"`
}

// IdleResource is one of them. Without a team and a key, it is the organisation's.
type IdleResource struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
	Idle
}

// Idle says why a resource is idle.
type Idle struct {
	// Reason is unused, no_jobs, stopped or unmounted.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// PerMonth is its cost in a month as it stands, USD.
	PerMonth string `json:"perMonth"`
	// Kept is until when its owner keeps it, StopAt when it will be stopped.
	Kept   *time.Time `json:"kept,omitempty"`
	StopAt *time.Time `json:"stopAt,omitempty"`
}

// Kept says until when a resource is left alone; nil ends that.
type Kept struct {
	Resource string     `json:"resource"`
	Until    *time.Time `json:"until"`
}

func (d Deps) idleRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/spend/idle", Summary: "Resources that cost money and do not work", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.idle),
			Commands: []row.Command{{Use: "spend idle ORG", Short: "Show resources that cost money and do not work, with owner, beginning, and cost a month", Example: "tollgate spend idle acme"}},
		},
		{
			Pattern: "POST /admin/spend/keep", Summary: "Leave an idle resource alone", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.keep),
			Commands: []row.Command{{Use: "spend keep ORG ID", Short: "Leave a resource alone for a time although it is idle", Example: "tollgate spend keep acme k2n5x8 --for 24h", Defaults: map[string]string{"for": "24h"}}},
		},
	}
}

func (d Deps) idle(ctx context.Context, _ row.Scope, p row.Scoped) (*IdleList, error) {
	return d.Spend.Idle(ctx, string(p.Org))
}

// kept is a resource to be left alone.
type kept struct {
	row.Scoped

	ID  string   `query:"id,required" doc:"id of a resource"`
	For row.Span `query:"for,required" doc:"how long, such as 24h, at most 30d; 0s ends it"`
}

func (d Deps) keep(ctx context.Context, _ row.Scope, p kept) (*Kept, error) {
	return d.Spend.Keep(ctx, string(p.Org), p.ID, time.Duration(p.For))
}
