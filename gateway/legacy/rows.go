package legacy

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Brownout is a period of refused calls to a legacy API.
type Brownout struct {
	Org     string    `json:"org"`
	Dialect string    `json:"dialect"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	// Now reports whether the period has begun.
	Now bool `json:"now"`
}

// Call counts the calls of one operation by one caller with one program.
type Call struct {
	Org       string `json:"org"`
	Key       string `json:"key"`
	Dialect   string `json:"dialect"`
	Operation string `json:"operation"`
	// Agent is the program as product and major version.
	Agent string    `json:"agent"`
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Statuses counts responses by class, such as "2xx".
	Statuses map[string]int64 `json:"statuses"`
	// V2 lists the v2 operations that replace the operation, most important first. It may be empty.
	V2 []string `json:"v2"`
	// Became counts calls by the v2 operations that they actually made.
	Became map[string]int64 `json:"became,omitempty"`
	// Lost counts calls by field, for fields without an equivalent in v2.
	Lost map[string]int64 `json:"lost,omitempty"`
	// Refused is the current or next brownout of the API.
	Refused *Brownout `json:"refused,omitempty"`
}

// List is the response to a query for legacy calls.
type List struct {
	Calls []Call `json:"calls"`
	// Brownouts lists the brownouts of the next week in order.
	Brownouts []Brownout `json:"brownouts"`
}

// Endpoints returns the operators' API rows for legacy calls. With a nil Calls, the rows can only be listed.
func (c *Calls) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/legacy", Summary: "List the callers of the legacy APIs", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(c.list),
			Commands: []adminapi.Command{{
				Use: "migrate report", Short: "List callers of v1 and GraphQL with call counts and replacement v2 operations",
				Example: "tollgate migrate report --org acme -o csv",
				Long: `Lists the remaining callers of the legacy APIs at a running gateway: one line for
each key, program and operation, with the v2 operation that replaces it and the fields
that v2 does not support. A GraphQL document counts for each of its root fields.`,
			}},
		},
	}
}
