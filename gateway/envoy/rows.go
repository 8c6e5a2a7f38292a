package envoy

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Status is the state of all groups of Envoys across all gateways, and of the Envoys connected to this gateway.
type Status struct {
	Groups []GroupStatus `json:"groups"`
	Nodes  []Node        `json:"nodes"`
}

// GroupSnapshot is the configuration served to a group of Envoys: its resources by type and name, and its gateways.
type GroupSnapshot struct {
	Resources map[string]string `json:"resources"`
	Gateways  []Gateway         `json:"gateways"`
}

// Endpoints returns the admin API endpoints for Envoys. A nil Server returns endpoints that can be listed but not called.
func (s *Server) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/envoy", Summary: "Groups of Envoys, and the Envoys connected to this gateway",
			Role: adminapi.Viewer, Handler: adminapi.HandlerFor(s.status),
			Commands: []adminapi.Command{{
				Use: "envoy status", Short: "Show groups of Envoys, connected Envoys, and the resources they refused", Example: "tollgate envoy status",
				Long: `Shows each group of Envoys with the number of Envoys connected to all gateways and
to this one, and the resources that an Envoy refused and no Envoy has accepted since.
Then lists the Envoys connected to this gateway with the versions they have.`,
			}},
		},
		{
			Pattern: "GET /admin/envoy/snapshot", Summary: "Resources served to a group of Envoys", Role: adminapi.Viewer,
			Handler: adminapi.HandlerFor(s.snapshot),
		},
	}
}

func (s *Server) status(context.Context, adminapi.Principal, adminapi.NoParams) (Status, error) {
	return Status{s.Groups(), s.Nodes()}, nil
}

// grouped is the parameter that names a group of Envoys.
type grouped struct {
	Group string `query:"group,required" doc:"id of a configured node group"`
}

func (s *Server) snapshot(_ context.Context, _ adminapi.Principal, p grouped) (GroupSnapshot, error) {
	resources, gateways, err := s.Snapshot(p.Group)
	if err != nil {
		err = adminapi.BadParam("group", "%s", err)
	}
	return GroupSnapshot{Resources: resources, Gateways: gateways}, err
}
