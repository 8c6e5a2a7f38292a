package envoy_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
)

// A patch changes the members that it names and nothing else.
func TestMerge(t *testing.T) {
	g := group(envoy.InLine)
	before := snapshot(t, g)
	g.Merge = envoy.Merge{
		Listeners: map[string]any{"callers": map[string]any{"tcp_backlog_size": int64(7), "per_connection_buffer_limit_bytes": nil}},
		Clusters:  map[string]any{"tollgate": map[string]any{"connect_timeout": "9s", "circuit_breakers": map[string]any{"thresholds": []any{}}}},
	}
	after := snapshot(t, g)
	l := after.GetResources(resource.ListenerType)["callers"].(*listenerv3.Listener)
	was := before.GetResources(resource.ListenerType)["callers"].(*listenerv3.Listener)
	if l.GetTcpBacklogSize().GetValue() != 7 || l.PerConnectionBufferLimitBytes != nil || len(l.GetFilterChains()) != len(was.GetFilterChains()) {
		t.Errorf("the listener is %v", l)
	}
	c := after.GetResources(resource.ClusterType)["tollgate"].(*clusterv3.Cluster)
	if c.GetConnectTimeout().GetSeconds() != 9 || len(c.GetCircuitBreakers().GetThresholds()) != 0 || len(c.GetHealthChecks()) == 0 {
		t.Errorf("the cluster is %v", c)
	}
	if before.GetVersion(resource.RouteType) != after.GetVersion(resource.RouteType) {
		t.Error("the routes have another version")
	}
}

// A patch that does not merge, or that Envoy's validators refuse, is an error that names
// the resource.
func TestMergeRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		merge envoy.Merge
		want  string
	}{
		"no resource": {envoy.Merge{Clusters: map[string]any{"nowhere": map[string]any{}}}, "clusters nowhere: the group has no resource with this name"},
		"no field":    {envoy.Merge{Clusters: map[string]any{"tollgate": map[string]any{"bogus": 1}}}, `unknown field "bogus"`},
		"a type":      {envoy.Merge{Listeners: map[string]any{"callers": map[string]any{"tcp_backlog_size": "many"}}}, "listeners callers: "},
		"a name":      {envoy.Merge{Listeners: map[string]any{"callers": map[string]any{"name": "other"}}}, `the patch must not change the name of the resource to "other"`},
		"a value":     {envoy.Merge{Clusters: map[string]any{"tollgate": map[string]any{"connect_timeout": "-1s"}}}, "ConnectTimeout"},
		"no object":   {envoy.Merge{Clusters: map[string]any{"tollgate": "x"}}, "clusters tollgate: "},
		"an extension": {envoy.Merge{Clusters: map[string]any{"tollgate": map[string]any{
			"transport_socket": map[string]any{"name": "a", "typed_config": map[string]any{"@type": "type.googleapis.com/no.such.Type"}},
		}}}, "no.such.Type"},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(envoy.InLine)
			g.Merge = tc.merge
			_, err := g.Snapshot(nil)
			if p, ok := errors.AsType[*envoy.PatchError](err); !ok || p.Name == "" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want a fault of a patch with %q", err, tc.want)
			}
		})
	}
}

// Gateways of the group's zone come first; without any, others do. One that comes back
// in another zone is not there twice.
func TestZones(t *testing.T) {
	in := func(zone string, n int) envoy.Gateway {
		gw := gateway(fmt.Sprintf("10.0.0.%d", n))
		gw.Zone = zone
		return gw
	}
	a, b, c := in("a", 1), in("b", 2), in("", 3)
	for name, tc := range map[string]struct {
		zone     string
		gateways []envoy.Gateway
		want     []string
	}{
		"no zones":              {"", []envoy.Gateway{c}, []string{"0  10.0.0.3"}},
		"a group anywhere":      {"", []envoy.Gateway{a, b, c}, []string{"0  10.0.0.3", "0 a 10.0.0.1", "0 b 10.0.0.2"}},
		"a group in a zone":     {"b", []envoy.Gateway{a, b, c}, []string{"0 b 10.0.0.2", "1  10.0.0.3", "1 a 10.0.0.1"}},
		"a zone without any":    {"c", []envoy.Gateway{a, b}, []string{"0 a 10.0.0.1", "0 b 10.0.0.2"}},
		"two of a zone":         {"a", []envoy.Gateway{in("a", 4), a}, []string{"0 a 10.0.0.1 10.0.0.4"}},
		"moved to another zone": {"b", []envoy.Gateway{a, in("b", 1), b}, []string{"0 b 10.0.0.1 10.0.0.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(envoy.InLine)
			g.Zone = tc.zone
			var got []string
			for _, l := range snapshot(t, g, tc.gateways...).GetResources(resource.EndpointType)["tollgate"].(*endpointv3.ClusterLoadAssignment).GetEndpoints() {
				line := fmt.Sprintf("%d %s", l.GetPriority(), l.GetLocality().GetZone())
				for _, e := range l.GetLbEndpoints() {
					line += " " + e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress()
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}

// A gateway is read as it was written, with a zone and without.
func TestGatewayIsReadAsWritten(t *testing.T) {
	for _, zone := range []string{"", "eu-1"} {
		want := envoy.Gateway{Data: netip.MustParseAddrPort("10.0.0.1:8080"), Door: netip.MustParseAddrPort("[::1]:8082"), Zone: zone}
		if got, err := envoy.ParseGateway(want.String()); err != nil || got != want {
			t.Errorf("%q is read as %+v, %v", want, got, err)
		}
	}
}
