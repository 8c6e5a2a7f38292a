package operator

import (
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
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

// Rows are the questions of operators about quotas.
func (l Limits) Rows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/limits", Summary: "Windows in use of the quotas of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(l.show),
			Commands: []row.Command{{Use: "limits show ORG", Short: "Show the windows in use, the rest of each, and the holders of leases", Example: "tollgate limits show acme"}},
		},
		{
			Pattern: "POST /admin/limits/reset", Summary: "Empty the windows of a scope, or of the whole organisation", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(l.reset),
			Commands: []row.Command{{Use: "limits reset ORG", Example: "tollgate limits reset acme --scope key:ann"}},
		},
	}
}

// LimitList is a list of windows.
type LimitList struct {
	Windows []Window `json:"windows"`
}

// resetting says which windows are emptied.
type resetting struct {
	row.Scoped

	Scope string `query:"scope" doc:"key:ID, team:ID, org:ID or class:ID; absent is the whole organisation"`
}
