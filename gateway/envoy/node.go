package envoy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	deltav3 "github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

var _ deltav3.Callbacks = (*Server)(nil)

// node is a connected Envoy.
type node struct {
	id, group, version, address string
	since                       time.Time
	types                       map[string]*acceptance // by type URL
}

// acceptance records which versions of one resource type a node has accepted and refused.
type acceptance struct {
	sent map[string]string // versions by nonce, until acknowledged or rejected
	// brought holds the versions of the resources that the node already had when it connected, by name.
	brought map[string]string
	// accepted and refused are the versions that the node accepted and refused last. reason is the node's error message for the refused
	// version; it is "" after the node has accepted a later version.
	accepted, refused, reason string
}

// OnDeltaStreamOpen implements the callback of go-control-plane.
func (s *Server) OnDeltaStreamOpen(ctx context.Context, stream int64, _ string) error {
	n := &node{since: s.deps.Now(), types: make(map[string]*acceptance)}
	if p, ok := peer.FromContext(ctx); ok {
		n.address = p.Addr.String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[stream] = n
	return nil
}

// OnDeltaStreamClosed implements the callback of go-control-plane.
func (s *Server) OnDeltaStreamClosed(stream int64, _ *corev3.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, stream)
	s.review()
}

// OnStreamDeltaRequest implements the callback of go-control-plane. It records the node, and whether it accepted the previous response.
func (s *Server) OnStreamDeltaRequest(stream int64, req *discoveryv3.DeltaDiscoveryRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[stream]
	if identified := req.GetNode(); identified != nil && n.group == "" {
		if s.groups[identified.GetCluster()] == nil {
			s.deps.Logger.Warn("refused an Envoy whose node group is not configured", "node", clipReason(identified.GetId()), "group",
				clipReason(identified.GetCluster()), "network.peer.address", n.address)
			return status.Errorf(codes.PermissionDenied, "node group %q is not configured: correct node.cluster in the Envoy's bootstrap",
				clipReason(identified.GetCluster()))
		}
		v := identified.GetUserAgentBuildVersion().GetVersion()
		n.id, n.group, n.version = clipReason(identified.GetId()), identified.GetCluster(),
			fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
		s.deps.Logger.Info("Envoy connected", "node", n.id, "group", n.group, "version", n.version, "network.peer.address", n.address)
	}
	t := n.of(req.GetTypeUrl())
	if has := req.GetInitialResourceVersions(); len(has) > 0 {
		t.brought = has
	}
	version, answered := t.sent[req.GetResponseNonce()]
	if !answered {
		return nil
	}
	delete(t.sent, req.GetResponseNonce())
	if detail := req.GetErrorDetail(); detail != nil {
		s.refuse(n, req.GetTypeUrl(), version, detail.GetMessage())
		return nil
	}
	t.accepted, t.reason = version, ""
	s.review()
	return nil
}

// OnStreamDeltaResponse implements the callback of go-control-plane.
func (s *Server) OnStreamDeltaResponse(stream int64, _ *discoveryv3.DeltaDiscoveryRequest, res *discoveryv3.DeltaDiscoveryResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[stream].of(res.GetTypeUrl()).sent[res.GetNonce()] = res.GetSystemVersionInfo()
}

func (n *node) of(typeURL string) *acceptance {
	t := n.types[typeURL]
	if t == nil {
		t = &acceptance{sent: make(map[string]string)}
		n.types[typeURL] = t
	}
	return t
}

// short returns the last element of a type URL.
func short(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '.')+1:] }

// Node describes a connected Envoy.
type Node struct {
	ID        string     `json:"id"`
	Group     string     `json:"group"`
	Version   string     `json:"version"`
	Address   string     `json:"address"`
	Since     time.Time  `json:"since"`
	Resources []Resource `json:"resources"`
}

// Resource describes which versions of one resource type a node has accepted and refused.
type Resource struct {
	Type string `json:"type"`
	// Serving is the version that is served to the group. Accepted is the version that the node accepted last.
	Serving  string `json:"serving"`
	Accepted string `json:"accepted"`
	// Refused is the version that the node refused last, and Reason is its error message. Both are empty after the node has accepted a later
	// version.
	Refused string `json:"refused,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Nodes returns the Envoys connected to this gateway, in a fixed order.
func (s *Server) Nodes() []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := []Node{}
	for _, n := range s.nodes {
		if n.group == "" {
			continue // the node has not identified itself yet
		}
		shown := Node{ID: n.id, Group: n.group, Version: n.version, Address: n.address, Since: n.since}
		for typeURL, t := range n.types {
			r := Resource{Type: short(typeURL), Serving: s.version(n.group, typeURL), Accepted: s.accepted(n, t, typeURL), Reason: t.reason}
			if t.reason != "" {
				r.Refused = t.refused
			}
			shown.Resources = append(shown.Resources, r)
		}
		slices.SortFunc(shown.Resources, func(a, b Resource) int { return cmp.Compare(a.Type, b.Type) })
		nodes = append(nodes, shown)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.ID, b.ID)) })
	return nodes
}
