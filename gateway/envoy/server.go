package envoy

import (
	"context"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	deltav3 "github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// tokenHeader is the metadata key with the bearer token of an Envoy (RFC 6750, section 2.1).
const (
	tokenHeader = "authorization"
	bearer      = "Bearer "
)

// Deps holds the dependencies of a Server. All fields are required.
type Deps struct {
	Logger *slog.Logger
	Meter  metric.Meter
	Now    func() time.Time
}

// Server is a discovery service (xDS) that serves the configuration of each node group to connected Envoys. It is safe for concurrent use.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	deps    Deps
	cache   cache.SnapshotCache
	delta   deltav3.Server
	end     context.CancelFunc
	refused metric.Int64Counter
	// withdrawn is signalled when an Envoy rejects the configuration of its group.
	withdrawn chan struct{}

	mu       sync.Mutex // guards the fields below
	groups   map[string]*groupState
	gateways []Gateway
	known    bool            // gateways lists all ready gateways
	nodes    map[int64]*node // by stream
	others   []Report        // of the other gateways
	token    string
}

// groupState holds the current and the previous configuration of a group.
type groupState struct {
	// now is the current configuration. before is the configuration to restore if an Envoy refuses the current one, or nil.
	now, before *Group
	// refused is the current refusal, or nil.
	refused *Refusal
}

// NewServer returns a Server without node groups. Call [Server.SetGroups] and [Server.SetGateways] to configure it.
func NewServer(deps Deps) *Server {
	ctx, end := context.WithCancel(context.Background()) //nolint:forbidigo // ended by Close
	s := &Server{
		deps: deps, end: end, withdrawn: make(chan struct{}, 1), groups: make(map[string]*groupState), nodes: make(map[int64]*node),
		// The cache is ordered, so that Envoys receive clusters before resources that refer to the clusters.
		cache: cache.NewSnapshotCache(true, byGroup{}, nil),
	}
	s.delta = deltav3.NewServer(ctx, resubscribed{s.cache}, s)
	s.refused = telemetry.Must(deps.Meter.Int64Counter("tollgate.envoy.refusals",
		metric.WithDescription("Refusals of a configuration by an Envoy.")))
	s.observe(deps.Meter)
	return s
}

// observe registers metrics for the state of each group.
func (s *Server) observe(m metric.Meter) {
	nodes := telemetry.Must(m.Int64ObservableGauge("tollgate.envoy.nodes", metric.WithDescription("Envoys connected to this gateway.")))
	ready := telemetry.Must(m.Int64ObservableGauge("tollgate.envoy.gateways",
		metric.WithDescription("Gateways that receive requests from Envoys.")))
	behind := telemetry.Must(m.Int64ObservableGauge("tollgate.envoy.refused", metric.WithDescription(
		"1 while Envoys connected to this gateway use an older configuration because an Envoy refused the current configuration.")))
	telemetry.Must(m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r := s.Report()
		for group, n := range r.Nodes {
			of := metric.WithAttributes(attribute.String("group", group))
			o.ObserveInt64(nodes, n, of)
			refused := int64(0)
			if _, found := r.Refused[group]; found {
				refused = 1
			}
			o.ObserveInt64(behind, refused, of)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		o.ObserveInt64(ready, int64(len(s.gateways)))
		return nil
	}, nodes, ready, behind))
}

// Register registers the discovery service with a gRPC server.
func (s *Server) Register(g *grpc.Server) { discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, s) }

// Close ends the streams of all Envoys, which then reconnect to any gateway.
func (s *Server) Close() { s.end() }

// DeltaAggregatedResources implements the discovery service. It returns the status Unauthenticated if a token is required and the Envoy's
// token is missing or wrong.
func (s *Server) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	s.mu.Lock()
	want := s.token
	s.mu.Unlock()
	md, _ := metadata.FromIncomingContext(stream.Context())
	if want != "" && !slices.ContainsFunc(md.Get(tokenHeader), func(got string) bool {
		return subtle.ConstantTimeCompare([]byte(got), []byte(bearer+want)) == 1
	}) {
		s.deps.Logger.Warn("refused an Envoy that did not send the token in envoy.xds.token")
		return status.Error(codes.Unauthenticated, "the token is missing or differs from envoy.xds.token: start Envoy with a new bootstrap")
	}
	return s.delta.DeltaStreamHandler(stream, resource.AnyType)
}

// byGroup assigns the same snapshot to all nodes of a group.
type byGroup struct{}

// ID implements cache.NodeHash.
func (byGroup) ID(n *corev3.Node) string { return n.GetCluster() }

// SetGroups replaces all groups. It also serves a configuration that an Envoy refused earlier. Envoys of a removed group keep their
// configuration, and get the next one if the group returns. If [Group.Snapshot] returns an error for one of the groups, SetGroups returns
// this error and changes nothing. token is the bearer token that Envoys must present in addition to a certificate; "" means that no token
// is required.
func (s *Server) SetGroups(groups []Group, token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, next := s.groups, make(map[string]*groupState, len(groups))
	for i := range groups {
		p := &groupState{now: &groups[i]}
		if old := s.groups[groups[i].ID]; old != nil {
			p.before = old.now
			if reflect.DeepEqual(old.now, p.now) {
				p.before = old.before
			}
			if old.refused != nil {
				tried := *old.refused
				tried.Withdrawn, p.refused = false, &tried
			}
		}
		next[groups[i].ID] = p
	}
	s.groups = next
	if err := s.serve(); err != nil {
		s.groups = before
		return err
	}
	s.token = token // no ClearSnapshot of removed groups: it would drop the open watches of their Envoys
	return nil
}

// SetGateways sets the gateways that accept requests. The server sends no resources before the first call, because an Envoy that was
// connected to another gateway would otherwise lose its list of gateways.
func (s *Server) SetGateways(gateways []Gateway) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && slices.Equal(gateways, s.gateways) {
		return nil
	}
	s.gateways, s.known = slices.Clone(gateways), true
	return s.serve()
}

// serve generates the snapshots of all groups. If it returns an error, no snapshot has changed. The caller must hold mu.
func (s *Server) serve() error {
	if !s.known {
		return nil
	}
	snapshots := make(map[string]*cache.Snapshot, len(s.groups))
	for id, p := range s.groups {
		snapshot, err := p.now.Snapshot(s.gateways)
		if err != nil {
			return err
		}
		snapshots[id] = snapshot
	}
	for id, snapshot := range snapshots {
		if err := s.cache.SetSnapshot(context.Background(), id, snapshot); err != nil { //nolint:forbidigo // only writes to memory
			return fmt.Errorf("node group %s: %w", id, err)
		}
	}
	s.review()
	return nil
}

// Withdrawn returns a channel that receives a value when an Envoy refuses a configuration. The receiver must then call [Server.Withdraw].
func (s *Server) Withdrawn() <-chan struct{} { return s.withdrawn }

// Withdraw restores the previous configuration of each group where an Envoy has refused the current configuration. If a group has no
// previous configuration, its current configuration stays in use.
func (s *Server) Withdraw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	bad := make(map[string]bool)
	for _, n := range s.nodes {
		for typeURL, t := range n.types {
			if t.reason != "" && t.refused == s.version(n.group, typeURL) {
				bad[n.group] = true
			}
		}
	}
	for id := range bad {
		if p := s.groups[id]; p != nil && p.before != nil {
			p.now, p.before = p.before, nil
			if p.refused != nil {
				p.refused.Withdrawn = true
			}
			s.deps.Logger.Error("an Envoy refused the current configuration; restored the previous configuration of the group", "group", id)
		}
	}
	return s.serve()
}

// version returns the version of a resource type served to a group, or "" if the group is not configured. The caller must hold mu.
func (s *Server) version(group, typeURL string) string {
	snapshot, err := s.cache.GetSnapshot(group)
	if err != nil || s.groups[group] == nil {
		return ""
	}
	return snapshot.GetVersion(typeURL)
}

// Snapshot returns the resources that are served to a group, in the format of [Render], and the gateways that the resources contain. It
// returns no resources for a removed group whose Envoys are connected, and an error for any other group that is not configured.
func (s *Server) Snapshot(group string) (resources map[string]string, gateways []Gateway, err error) {
	_, listed := s.Report().Nodes[group]
	s.mu.Lock()
	defer s.mu.Unlock()
	snapshot, err := s.cache.GetSnapshot(group)
	switch {
	case s.groups[group] == nil && listed:
		return nil, slices.Clone(s.gateways), nil
	case s.groups[group] == nil, err != nil:
		return nil, nil, fmt.Errorf("node group %q is not configured; configured groups: %q", group, slices.Sorted(maps.Keys(s.groups)))
	}
	resources, err = Render(snapshot)
	return resources, slices.Clone(s.gateways), err
}
