package admin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Legacy tells who still calls the retired interfaces.
type Legacy interface {
	// Calls returns the legacy calls of an organisation, or of all for "". It
	// returns row.ErrNoOrg for one that is not configured.
	Calls(ctx context.Context, org string) ([]LegacyCall, error)
	// Brownouts returns the times in which retired interfaces of an organisation, or of all for "", are refused, from now on for a week.
	Brownouts(org string) []Brownout
}

// Brownout is a time in which a retired interface is refused.
type Brownout struct {
	Org     string    `json:"org"`
	Dialect string    `json:"dialect"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	// Now reports whether it has begun.
	Now bool `json:"now"`
}

// LegacyCall is the calls of one caller, with one program, of one operation.
type LegacyCall struct {
	Org       string `json:"org"`
	Key       string `json:"key"`
	Dialect   string `json:"dialect"`
	Operation string `json:"operation"`
	// Agent is the program, as product and major version.
	Agent string    `json:"agent"`
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Statuses counts answers by class, such as "2xx".
	Statuses map[string]int64 `json:"statuses"`
	// V2 lists the operations to move to, the main one first; empty when there
	// is none.
	V2 []string `json:"v2"`
	// Became counts, by v2 operation, the calls that really became it.
	Became map[string]int64 `json:"became,omitempty"`
	// Lost counts, by field, the calls of which v2 has no place for something.
	Lost map[string]int64 `json:"lost,omitempty"`
	// Refused is the next time in which the interface is refused, or the one under way.
	Refused *Brownout `json:"refused,omitempty"`
}

// LegacyList is the calls as they are answered.
type LegacyList struct {
	Calls []LegacyCall `json:"calls"`
	// Brownouts are those of a week, the next first.
	Brownouts []Brownout `json:"brownouts"`
}

func (d Deps) legacyRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/legacy", Summary: "The callers of the retired interfaces", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.legacy),
			Commands: []row.Command{{
				Use: "migrate report", Short: "List the callers of v1 and GraphQL, how often they call, and the v2 operation to call instead", Example: "tollgate migrate report --org acme -o csv",
				Long: `Lists the remaining callers of the retired interfaces at a running gateway: one line
for each key, program and operation, with the v2 operation that takes its place and
the fields v2 has no place for. A GraphQL document counts for each of its root fields.`,
			}},
		},
	}
}

func (d Deps) legacy(ctx context.Context, _ row.Scope, p row.AnyOrg) (LegacyList, error) {
	calls, err := d.Legacy.Calls(ctx, string(p.Org))
	return LegacyList{calls, d.Legacy.Brownouts(string(p.Org))}, err
}
