package admin

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/xds"
)

// Envoys knows the snapshots that Envoys are served and their responses to them.
type Envoys interface {
	// Groups lists the groups that are configured, as all gateways see them.
	Groups() []xds.GroupStatus
	// Nodes lists those that are connected to this gateway.
	Nodes() []xds.Node
	// Served returns the resources a group is served, by type and name, and the
	// gateways in them.
	Served(group string) (map[string]string, []xds.Gateway, error)
}

// EnvoyList is the Envoys as they are answered.
type EnvoyList struct {
	Groups []xds.GroupStatus `json:"groups"`
	Nodes  []xds.Node        `json:"nodes"`
}

// EnvoySnapshot is the configuration that a group of Envoys is served.
type EnvoySnapshot struct {
	Resources map[string]string `json:"resources"`
	Gateways  []xds.Gateway     `json:"gateways"`
}

func (d Deps) envoyRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/envoy", Summary: "Groups of Envoys, and the Envoys connected to this gateway", Role: row.Viewer, Ask: row.Do(d.envoys),
			Commands: []row.Command{{
				Use: "envoy status", Short: "Show the groups of Envoys, those connected to a gateway, and the resources they refused", Example: "tollgate envoy status",
				Long: `Shows each group of Envoys, with how many are connected to all gateways and to
this one, and the resources that an Envoy refused and none has taken since; then the
Envoys that are connected to this gateway, with the versions that they have.`,
			}},
		},
		{Pattern: "GET /admin/envoy/snapshot", Summary: "The resources that a group of Envoys is served", Role: row.Viewer, Ask: row.Do(d.envoySnapshot)},
	}
}

func (d Deps) envoys(context.Context, row.Scope, row.None) (EnvoyList, error) {
	return EnvoyList{d.Envoys.Groups(), d.Envoys.Nodes()}, nil
}

// grouped names a group of Envoys.
type grouped struct {
	Group string `query:"group,required" doc:"a node group of the configuration"`
}

func (d Deps) envoySnapshot(_ context.Context, _ row.Scope, p grouped) (EnvoySnapshot, error) {
	resources, gateways, err := d.Envoys.Served(p.Group)
	if err != nil {
		err = row.Bad("group", "%s", err)
	}
	return EnvoySnapshot{Resources: resources, Gateways: gateways}, err
}
