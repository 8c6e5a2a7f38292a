package legacy

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Brownout is a scheduled outage: from From to Until, the gateway refuses the calls of an organisation to a legacy API.
type Brownout struct {
	Org     string    `json:"org"`
	Dialect string    `json:"dialect"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
	// Now reports whether the period has begun.
	Now bool `json:"now"`
}

// Call counts the calls of one legacy operation by one caller with one program.
type Call struct {
	Org       string `json:"org"`
	Key       string `json:"key"`
	Dialect   string `json:"dialect"`
	Operation string `json:"operation"`
	// Agent is the name of the program with its major version.
	Agent string    `json:"agent"`
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Statuses counts responses by class, such as "2xx".
	Statuses map[string]int64 `json:"statuses"`
	// V2 lists the v2 operations that replace the legacy operation, most important first. It may be empty.
	V2 []string `json:"v2"`
	// Became counts the calls by the v2 operations into which the gateway translated them.
	Became map[string]int64 `json:"became,omitempty"`
	// Lost counts the calls that used a field without an equivalent in v2, by field.
	Lost map[string]int64 `json:"lost,omitempty"`
	// Refused is the current or next brownout for these calls, or nil.
	Refused *Brownout `json:"refused,omitempty"`
}

// List is the response to a query for legacy calls.
type List struct {
	Calls []Call `json:"calls"`
	// Brownouts lists the brownouts of the next week, sorted by start.
	Brownouts []Brownout `json:"brownouts"`
}

// Endpoints returns the admin API endpoint that lists the callers of the legacy APIs. If c is nil, the endpoint is only for use in
// documentation, and must not be called.
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
