package operator

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Window is a quota window of one scope.
type Window struct {
	Scope  string `json:"scope"`
	Window string `json:"window"`
	// Limit is 0 if the scope has no limit, or if its limit is unknown because the scope is not in use.
	Limit        int64 `json:"limit"`
	Used         int64 `json:"used"`
	Remaining    int64 `json:"remaining"`
	ResetSeconds int64 `json:"resetSeconds"`
	// Throttled is the number of requests that the window has refused since the time Since of the list.
	Throttled int64 `json:"throttled,omitempty"`
	// Leases lists the permits leased by gateways.
	Leases []Lease `json:"leases,omitempty"`
}

// Lease is the number of permits leased by one gateway.
type Lease struct {
	Gateway string `json:"gateway"`
	Held    int64  `json:"held"`
}

// Endpoints returns the endpoints for quotas.
func (l Limits) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/limits", Summary: "Quota usage of an organisation", AuditsReads: true, Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(l.show),
			Commands: []adminapi.Command{{
				Use: "limits show ORG", Heading: "Access", Group: "Show and reset the limits of a running gateway",
				Short: "Show usage, remaining calls, throttled calls and leases of each quota window", Example: "tollgate limits show acme",
			}},
		},
		{
			Pattern: "POST /admin/limits/reset", Summary: "Reset the quota counters of a scope, or of the whole organisation",
			Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Mutates: true, Handler: adminapi.HandlerFor(l.reset),
			Commands: []adminapi.Command{{Use: "limits reset ORG", Example: "tollgate limits reset acme --scope key:ann"}},
		},
	}
}

// LimitList is a list of windows.
type LimitList struct {
	Windows []Window `json:"windows"`
	// Since is 24 hours ago, rounded down to five minutes.
	Since time.Time `json:"since"`
}

// resetting selects the windows to reset.
type resetting struct {
	adminapi.OrgParam

	Scope string `query:"scope" doc:"scope to reset, such as key:ann or team:ml; default: the whole organisation"`
}
