package envoy

import (
	"context"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Status is the groups of Envoys, as all gateways see them, and the Envoys that are connected to this gateway.
type Status struct {
	Groups []GroupStatus `json:"groups"`
	Nodes  []Node        `json:"nodes"`
}

// GroupSnapshot is the configuration that a group of Envoys is served: resources by type and name, and the gateways in them.
type GroupSnapshot struct {
	Resources map[string]string `json:"resources"`
	Gateways  []Gateway         `json:"gateways"`
}

// Endpoints are the questions of operators about Envoys. A nil Server describes them.
func (s *Server) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/envoy", Summary: "Groups of Envoys, and the Envoys connected to this gateway", Role: adminapi.Viewer, Handler: adminapi.HandlerFor(s.status),
			Commands: []adminapi.Command{{
				Use: "envoy status", Short: "Show the groups of Envoys, those connected to a gateway, and the resources they refused", Example: "tollgate envoy status",
				Long: `Shows each group of Envoys, with how many are connected to all gateways and to
this one, and the resources that an Envoy refused and none has taken since; then the
Envoys that are connected to this gateway, with the versions that they have.`,
			}},
		},
		{Pattern: "GET /admin/envoy/snapshot", Summary: "The resources that a group of Envoys is served", Role: adminapi.Viewer, Handler: adminapi.HandlerFor(s.snapshot)},
	}
}

func (s *Server) status(context.Context, adminapi.Principal, adminapi.NoParams) (Status, error) {
	return Status{s.Groups(), s.Nodes()}, nil
}

// grouped names a group of Envoys.
type grouped struct {
	Group string `query:"group,required" doc:"a node group of the configuration"`
}

func (s *Server) snapshot(_ context.Context, _ adminapi.Principal, p grouped) (GroupSnapshot, error) {
	resources, gateways, err := s.Snapshot(p.Group)
	if err != nil {
		err = adminapi.BadParam("group", "%s", err)
	}
	return GroupSnapshot{Resources: resources, Gateways: gateways}, err
}
