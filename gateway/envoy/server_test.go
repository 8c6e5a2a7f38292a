package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/metric/noop"
	statusv3 "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
)

// serve runs a server and returns a way to connect to it as an Envoy.
func serve(t *testing.T, groups ...envoy.Group) (*envoy.Server, func(group string, header ...string) *anEnvoy) {
	t.Helper()
	s := envoy.NewServer(envoy.Deps{Logger: slog.New(slog.DiscardHandler), Meter: noop.NewMeterProvider().Meter(""), Now: time.Now})
	if err := s.SetGroups(groups, ""); err != nil {
		t.Fatal(err)
	}
	l := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	s.Register(g)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		g.GracefulStop()                                                           // returns only because End ended the streams
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // which came before Serve
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient("passthrough:bufnet", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return s, func(group string, header ...string) *anEnvoy {
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(metadata.AppendToOutgoingContext(t.Context(), header...))
		if err != nil {
			t.Fatal(err)
		}
		return &anEnvoy{t: t, stream: stream, node: &corev3.Node{Id: "e1", Cluster: group}}
	}
}

// anEnvoy is one end of a stream.
type anEnvoy struct {
	t      *testing.T
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	node   *corev3.Node
}

func (e *anEnvoy) send(req *discoveryv3.DeltaDiscoveryRequest) {
	e.t.Helper()
	req.Node, e.node = e.node, nil // told once
	if err := e.stream.Send(req); err != nil {
		e.t.Fatal(err)
	}
}

func (e *anEnvoy) recv() *discoveryv3.DeltaDiscoveryResponse {
	e.t.Helper()
	res, err := e.stream.Recv()
	if err != nil {
		e.t.Fatal(err)
	}
	return res
}

// answer accepts a response, or refuses it for a reason.
func (e *anEnvoy) answer(res *discoveryv3.DeltaDiscoveryResponse, reason string) {
	e.t.Helper()
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: res.GetTypeUrl(), ResponseNonce: res.GetNonce()}
	if reason != "" {
		req.ErrorDetail = &statusv3.Status{Code: int32(codes.Internal), Message: reason}
	}
	e.send(req)
}

// subscribe asks for all resources of a type and accepts them.
func (e *anEnvoy) subscribe(typeURL string) *discoveryv3.DeltaDiscoveryResponse {
	e.t.Helper()
	e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL})
	res := e.recv()
	e.answer(res, "")
	return res
}

func on(address string) envoy.Group {
	g := group(envoy.InLine)
	g.Listen = netip.MustParseAddrPort(address)
	return g
}

// A configuration that an Envoy refuses is withdrawn, and the one that it has is served
// again, with the gateways as they are then. It is tried again when it is configured
// again.
func TestARefusedConfigurationIsWithdrawn(t *testing.T) {
	good, bad := on("127.0.0.1:1"), on("127.0.0.1:2")
	s, connect := serve(t, good)
	if err := s.SetGateways([]envoy.Gateway{gateway("10.0.0.1")}); err != nil {
		t.Fatal(err)
	}
	e := connect("edge")
	first := e.subscribe(resource.ListenerType)
	for range 2 {
		if err := s.SetGroups([]envoy.Group{bad}, ""); err != nil {
			t.Fatal(err)
		}
		second := e.recv()
		if second.GetSystemVersionInfo() == first.GetSystemVersionInfo() {
			t.Fatal("the other configuration has the same version")
		}
		e.answer(second, "cannot bind")
		<-s.Withdrawn()
		nodes := s.Nodes()
		want := []envoy.Resource{{
			Type: "Listener", Serving: second.GetSystemVersionInfo(), Accepted: first.GetSystemVersionInfo(),
			Refused: second.GetSystemVersionInfo(), Reason: "cannot bind",
		}}
		if diff := cmp.Diff(want, nodes[0].Resources); len(nodes) != 1 || diff != "" {
			t.Errorf("%d nodes, resources of the first (-want +got):\n%s", len(nodes), diff)
		}
		if err := s.Withdraw(); err != nil {
			t.Fatal(err)
		}
		third := e.recv()
		if third.GetSystemVersionInfo() != first.GetSystemVersionInfo() {
			t.Errorf("version = %s, want the first one, %s", third.GetSystemVersionInfo(), first.GetSystemVersionInfo())
		}
		e.answer(third, "")
	}
	if err := s.SetGateways([]envoy.Gateway{gateway("10.0.0.2")}); err != nil {
		t.Fatal(err)
	}
	texts, gateways, err := s.Snapshot("edge")
	if err != nil {
		t.Fatal(err)
	}
	want, err := envoy.Render(snapshot(t, good, gateway("10.0.0.2")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, texts); diff != "" || len(gateways) != 1 {
		t.Errorf("with gateways %v is served (-want +got):\n%s", gateways, diff)
	}
}

// A group's refusal stays until all its Envoys have taken a configuration, which may be the
// one from before.
func TestARefusalIsToldUntilItIsMended(t *testing.T) {
	good, bad, mended := on("127.0.0.1:1"), on("127.0.0.1:2"), on("127.0.0.1:3")
	for name, mend := range map[string]struct {
		group envoy.Group
		asks  bool // that Envoys are sent something
	}{"another configuration": {mended, true}, "the one before": {good, false}} {
		t.Run(name, func(t *testing.T) {
			s, connect := serve(t, good)
			if err := s.SetGateways(nil); err != nil {
				t.Fatal(err)
			}
			told := func() string {
				t.Helper()
				groups := s.Groups()
				if len(groups) != 1 || groups[0].Nodes != 1 || groups[0].Here != 1 {
					t.Fatalf("groups = %+v, want one with an Envoy", groups)
				}
				r := groups[0].Refused
				if r == nil {
					return ""
				}
				return fmt.Sprintf("%s %s %s %t", r.Node, r.Type, r.Reason, r.Withdrawn)
			}
			want := func(step, text string) {
				t.Helper()
				if got := told(); got != text {
					t.Errorf("%s: told %q, want %q", step, got, text)
				}
			}
			e := connect("edge")
			e.subscribe(resource.ListenerType)
			for _, reason := range []string{"cannot bind", strings.Repeat("too long ", 1000)} {
				if err := s.SetGroups([]envoy.Group{bad}, ""); err != nil {
					t.Fatal(err)
				}
				e.answer(e.recv(), reason)
				<-s.Withdrawn()
				reason = reason[:min(len(reason), 1000)]
				want("refused", "e1 Listener "+reason+" false")
				if err := s.Withdraw(); err != nil {
					t.Fatal(err)
				}
				e.answer(e.recv(), "")
				e.subscribe(resource.ClusterType) // the answer before it is heard
				want("withdrawn", "e1 Listener "+reason+" true")
			}
			if err := s.SetGroups([]envoy.Group{mend.group}, ""); err != nil {
				t.Fatal(err)
			}
			if mend.asks {
				e.answer(e.recv(), "")
				e.subscribe(resource.RouteType)
			}
			want("mended", "")
		})
	}
}

// An Envoy that comes from another gateway has accepted the resources that it brings
// along, if they are served.
func TestWhatAnEnvoyBringsAlongIsAccepted(t *testing.T) {
	g := on("127.0.0.1:1")
	served := snapshot(t, g, gateway("10.0.0.1"))
	for name, tc := range map[string]struct{ version, want string }{
		"the same": {served.GetVersionMap(resource.ListenerType)["callers"], served.GetVersion(resource.ListenerType)},
		"another":  {"1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, connect := serve(t, g)
			if err := s.SetGateways([]envoy.Gateway{gateway("10.0.0.1")}); err != nil {
				t.Fatal(err)
			}
			e := connect("edge")
			e.send(&discoveryv3.DeltaDiscoveryRequest{
				TypeUrl: resource.ListenerType, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: map[string]string{"callers": tc.version},
			})
			e.recv()
			if got := s.Nodes()[0].Resources[0].Accepted; got != tc.want {
				t.Errorf("accepted = %q, want %q", got, tc.want)
			}
		})
	}
}

// Groups count the Envoys of all gateways, and tell of the oldest refusal.
func TestGroupsOfAllGateways(t *testing.T) {
	edge, mesh := on("127.0.0.1:1"), on("127.0.0.1:2")
	mesh.ID = "mesh"
	s, _ := serve(t, edge, mesh)
	at := func(minute int) envoy.Refusal {
		return envoy.Refusal{Since: time.Date(2026, 11, 21, 10, minute, 0, 0, time.UTC), Node: fmt.Sprint("e", minute)}
	}
	s.SetReports([]envoy.Report{
		{Nodes: map[string]int64{"edge": 2, "gone": 1}, Refused: map[string]envoy.Refusal{"edge": at(7), "gone": at(1)}},
		{Nodes: map[string]int64{"edge": 3}, Refused: map[string]envoy.Refusal{"edge": at(5)}},
	})
	oldest := at(5)
	want := []envoy.GroupStatus{{Group: "edge", Nodes: 5, Refused: &oldest}, {Group: "mesh"}}
	if diff := cmp.Diff(want, s.Groups(), cmpopts.IgnoreUnexported(envoy.Refusal{})); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// Without a configuration before it, a refused one stays: there is no better.
func TestTheFirstConfigurationStays(t *testing.T) {
	s, connect := serve(t, on("127.0.0.1:1"))
	if err := s.SetGateways(nil); err != nil {
		t.Fatal(err)
	}
	e := connect("edge")
	e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ListenerType})
	e.answer(e.recv(), "cannot bind")
	<-s.Withdrawn()
	if err := s.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Snapshot("edge"); err != nil {
		t.Errorf("nothing is served: %v", err)
	}
	if s.Groups()[0].Refused == nil {
		t.Error("the refusal is not shown")
	}
	if err := e.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); err == nil; _, err = e.stream.Recv() { // until the server has noticed
	}
	if r := s.Groups()[0].Refused; r != nil {
		t.Errorf("the refusal of an Envoy that has gone is shown: %+v", r)
	}
}

// An Envoy that subscribes again to a resource is sent it again, once for each time that it
// asks, and nothing is removed that is there. One that comes from another gateway is not
// sent the resources that it says it has.
func TestResubscribed(t *testing.T) {
	g := on("127.0.0.1:1")
	served := snapshot(t, g, gateway("10.0.0.1"))
	listener, routes := served.GetVersionMap(resource.ListenerType)["callers"], served.GetVersionMap(resource.RouteType)["callers"]
	for name, tc := range map[string]struct {
		first, again *discoveryv3.DeltaDiscoveryRequest
		want         []string
	}{
		"by name": {
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.RouteType, ResourceNamesSubscribe: []string{"callers"}},
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.RouteType, ResourceNamesSubscribe: []string{"callers"}},
			[]string{"callers " + routes},
		},
		"all": {
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ListenerType, ResourceNamesSubscribe: []string{"*"}},
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ListenerType, ResourceNamesSubscribe: []string{"*"}},
			[]string{"callers " + listener},
		},
		"all, of which one is gone": {
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ListenerType, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: map[string]string{"old": "1"}},
			&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ListenerType, ResourceNamesSubscribe: []string{"*"}},
			[]string{"callers " + listener},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, connect := serve(t, g)
			if err := s.SetGateways([]envoy.Gateway{gateway("10.0.0.1")}); err != nil {
				t.Fatal(err)
			}
			e := connect("edge")
			e.send(tc.first)
			e.answer(e.recv(), "")
			for range 2 {
				e.send(tc.again)
				res := e.recv()
				var got []string
				for _, r := range res.GetResources() {
					got = append(got, r.GetName()+" "+r.GetVersion())
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || len(res.GetRemovedResources()) > 0 {
					t.Errorf("removed %q, sent (-want +got):\n%s", res.GetRemovedResources(), diff)
				}
				e.answer(res, "")
			}
		})
	}
	t.Run("from another gateway", func(t *testing.T) {
		s, connect := serve(t, g)
		if err := s.SetGateways([]envoy.Gateway{gateway("10.0.0.1")}); err != nil {
			t.Fatal(err)
		}
		e := connect("edge")
		e.send(&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: resource.RouteType, ResourceNamesSubscribe: []string{"callers"}, InitialResourceVersions: map[string]string{"callers": routes},
		})
		e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ListenerType})
		if res := e.recv(); res.GetTypeUrl() != resource.ListenerType {
			t.Errorf("%s is sent, which the Envoy has: %v", res.GetTypeUrl(), res)
		}
	})
}

// An Envoy that comes from another gateway keeps its endpoints until this one has
// heard which gateways are ready.
func TestNothingIsServedBeforeGatewaysAreKnown(t *testing.T) {
	s, connect := serve(t, on("127.0.0.1:1"))
	if texts, _, err := s.Snapshot("edge"); err == nil {
		t.Errorf("served = %v, want nothing", texts)
	}
	e := connect("edge")
	e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType})
	if err := s.SetGateways([]envoy.Gateway{gateway("10.0.0.1")}); err != nil {
		t.Fatal(err)
	}
	if res := e.recv(); len(res.GetResources()) != 1 {
		t.Errorf("response = %v, want one cluster", res)
	}
}

func TestANodeOfNoGroupIsRefused(t *testing.T) {
	_, connect := serve(t, on("127.0.0.1:1"))
	e := connect("other")
	e.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: resource.ClusterType})
	if _, err := e.stream.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("err = %v, want PermissionDenied", err)
	}
}

// A configuration without a valid snapshot changes nothing: neither the token, nor the groups that are served, then and when the gateways change.
func TestAConfigurationWithAFaultChangesNothing(t *testing.T) {
	edge, gone, broken := on("127.0.0.1:1"), on("127.0.0.1:2"), on("127.0.0.1:3")
	gone.ID, broken.ID = "gone", "broken"
	broken.Tracing.URL = "http://["
	s, connect := serve(t, edge, gone)
	if err := s.SetGateways(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.SetGroups([]envoy.Group{edge, gone}, "in force"); err != nil {
		t.Fatal(err)
	}
	changed := edge
	changed.Listen = netip.MustParseAddrPort("127.0.0.1:4")
	served := func() map[string]string {
		resources, _, err := s.Snapshot("edge")
		if err != nil {
			t.Fatal(err)
		}
		return resources
	}
	before := served()
	if err := s.SetGroups([]envoy.Group{changed, broken}, "refused"); err == nil {
		t.Fatal("the broken group is taken")
	}
	if diff := cmp.Diff(before, served()); diff != "" {
		t.Errorf("edge is served (-before +after):\n%s", diff)
	}
	if err := s.SetGateways([]envoy.Gateway{gateway("10.0.0.1")}); err != nil {
		t.Errorf("when the gateways change: %v", err)
	}
	for _, id := range []string{"edge", "gone"} {
		if _, gateways, err := s.Snapshot(id); err != nil || len(gateways) != 1 {
			t.Errorf("%s is served with %v (%v)", id, gateways, err)
		}
	}
	for token, want := range map[string]codes.Code{"in force": codes.OK, "refused": codes.Unauthenticated} {
		e := connect("edge", "authorization", "Bearer "+token)
		_ = e.stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: e.node, TypeUrl: resource.ClusterType}) // Recv has the error of a refused stream
		if _, err := e.stream.Recv(); status.Code(err) != want {
			t.Errorf("with the token %q: %v, want %s", token, err, want)
		}
	}
}
