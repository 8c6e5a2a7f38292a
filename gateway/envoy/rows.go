package envoy

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Status is a response of the admin API: the groups of Envoys across all gateways, and the Envoys connected to this gateway.
type Status struct {
	Groups []GroupStatus `json:"groups"`
	Nodes  []Node        `json:"nodes"`
}

// GroupSnapshot is a response of the admin API: the resources served to a group of Envoys, by type and name, and the gateways in these
// resources.
type GroupSnapshot struct {
	Resources map[string]string `json:"resources"`
	Gateways  []Gateway         `json:"gateways"`
}

// Endpoints returns the admin API endpoints that describe Envoys. If s is nil, the endpoints can be listed, but must not be called.
func (s *Server) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/envoy", Summary: "Groups of Envoys, and the Envoys connected to this gateway",
			Role: adminapi.Viewer, Handler: adminapi.HandlerFor(s.status),
			Commands: []adminapi.Command{{
				Use: "envoy status", Short: "Show groups of Envoys, connected Envoys, and refused configurations", Example: "tollgate envoy status",
				Long: `Lists the groups of Envoys. The row of a group contains the number of Envoys that are
connected to all gateways, and the number connected to this gateway. If an Envoy refused
the configuration, the row shows the refusal until all Envoys of the group have accepted
a later configuration. A second list contains each Envoy that is connected to this
gateway, with the version that it uses of each type of resource.`,
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
	Group string `query:"group,required" doc:"ID of a configured node group"`
}

func (s *Server) snapshot(_ context.Context, _ adminapi.Principal, p grouped) (GroupSnapshot, error) {
	resources, gateways, err := s.Snapshot(p.Group)
	if err != nil {
		err = adminapi.BadParam("group", "%s", err)
	}
	return GroupSnapshot{Resources: resources, Gateways: gateways}, err
}
