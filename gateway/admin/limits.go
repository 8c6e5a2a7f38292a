package admin

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
)

// Limits shows and resets quotas. Both return ErrNoOrg for an organisation that
// is not configured.
type Limits interface {
	// Show returns the windows in use of an organisation.
	Show(ctx context.Context, org string) ([]Window, error)
	// Reset empties the windows of a scope ("key:ann"), or of the whole
	// organisation for "". A scope that the organisation does not have is a
	// BadRequestError.
	Reset(ctx context.Context, org, scope string) error
}

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

func (d Deps) limitRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/limits", Summary: "Windows in use of the quotas of an organisation", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.limits),
			Commands: []row.Command{{Use: "limits show ORG", Short: "Show the windows in use, the rest of each, and the holders of leases", Example: "tollgate limits show acme"}},
		},
		{
			Pattern: "POST /admin/limits/reset", Summary: "Empty the windows of a scope, or of the whole organisation", Role: row.Operator, About: row.OfOrg, Changes: true, Ask: row.Do(d.reset),
			Commands: []row.Command{{Use: "limits reset ORG", Example: "tollgate limits reset acme --scope key:ann"}},
		},
	}
}

// windowList is the list as it is answered.
type windowList struct {
	Windows []Window `json:"windows"`
}

func (d Deps) limits(ctx context.Context, _ row.Scope, p scoped) (windowList, error) {
	windows, err := d.Limits.Show(ctx, string(p.Org))
	return windowList{windows}, err
}

// resetting says which windows are emptied.
type resetting struct {
	scoped

	Scope string `query:"scope" doc:"key:ID, team:ID, org:ID or class:ID; absent is the whole organisation"`
}

func (d Deps) reset(ctx context.Context, _ row.Scope, p resetting) (row.Nothing, error) {
	return row.Nothing{}, d.Limits.Reset(ctx, string(p.Org), p.Scope)
}
