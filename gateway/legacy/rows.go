package legacy

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Brownout is a time in which a retired interface is refused.
type Brownout struct {
	Org     string    `json:"org"`
	Dialect string    `json:"dialect"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	// Now reports whether it has begun.
	Now bool `json:"now"`
}

// Call is the calls of one caller, with one program, of one operation.
type Call struct {
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

// List is the calls as they are answered.
type List struct {
	Calls []Call `json:"calls"`
	// Brownouts are those of a week, the next first.
	Brownouts []Brownout `json:"brownouts"`
}

// Endpoints are the questions of operators about the callers of retired interfaces. A nil Calls describes them.
func (c *Calls) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/legacy", Summary: "The callers of the retired interfaces", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(c.list),
			Commands: []adminapi.Command{{
				Use: "migrate report", Short: "List the callers of v1 and GraphQL, how often they call, and the v2 operation to call instead", Example: "tollgate migrate report --org acme -o csv",
				Long: `Lists the remaining callers of the retired interfaces at a running gateway: one line
for each key, program and operation, with the v2 operation that takes its place and
the fields v2 has no place for. A GraphQL document counts for each of its root fields.`,
			}},
		},
	}
}
