package operator

import (
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Window is one window of one scope.
type Window struct {
	Scope        string `json:"scope"`
	Window       string `json:"window"`
	Limit        int64  `json:"limit"`
	Used         int64  `json:"used"`
	Remaining    int64  `json:"remaining"`
	ResetSeconds int64  `json:"resetSeconds"`
	// Leases are the permits gateways hold of it.
	Leases []Lease `json:"leases,omitempty"`
}

// Lease holds one gateway's permits of a window.
type Lease struct {
	Gateway string `json:"gateway"`
	Held    int64  `json:"held"`
}

// Endpoints are the questions of operators about quotas.
func (l Limits) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/limits", Summary: "Windows in use of the quotas of an organisation", AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(l.show),
			Commands: []adminapi.Command{{Use: "limits show ORG", Short: "Show the windows in use, the rest of each, and the holders of leases", Example: "tollgate limits show acme"}},
		},
		{
			Pattern: "POST /admin/limits/reset", Summary: "Empty the windows of a scope, or of the whole organisation", Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Mutates: true, Handler: adminapi.HandlerFor(l.reset),
			Commands: []adminapi.Command{{Use: "limits reset ORG", Example: "tollgate limits reset acme --scope key:ann"}},
		},
	}
}

// LimitList is a list of windows.
type LimitList struct {
	Windows []Window `json:"windows"`
}

// resetting says which windows are emptied.
type resetting struct {
	adminapi.OrgParam

	Scope string `query:"scope" doc:"key:ID, team:ID, org:ID or class:ID; absent is the whole organisation"`
}
