package envoy_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// group is one of each topology, as they are configured commonly.
func group(topology envoy.Topology) envoy.Group {
	return envoy.Group{
		ID: "edge", Topology: topology, Listen: netip.MustParseAddrPort("0.0.0.0:10000"),
		Platform: envoy.Platform{Host: "api.platform.example", Port: 443, TLS: true, CAFile: "/etc/ssl/certs/ca-certificates.crt"},
		Body:     15 * time.Second, Call: 90 * time.Second,
	}
}

func gateway(host string) envoy.Gateway {
	return envoy.Gateway{Data: netip.MustParseAddrPort(host + ":8080"), Door: netip.MustParseAddrPort(host + ":8082")}
}

func snapshot(t testing.TB, g envoy.Group, gateways ...envoy.Gateway) *cache.Snapshot {
	t.Helper()
	s, err := g.Snapshot(gateways)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// versions are those of all types of resources.
func versions(s *cache.Snapshot) map[string]string {
	m := make(map[string]string)
	for _, typeURL := range []string{resource.ListenerType, resource.RouteType, resource.ClusterType, resource.EndpointType, resource.SecretType} {
		m[typeURL] = s.GetVersion(typeURL)
	}
	return m
}

// Versions follow content: the same input gives the same ones, and a change moves
// those of the types that it shows in and no others.
func TestVersionsFollowContent(t *testing.T) {
	one, two := gateway("10.0.0.1"), gateway("10.0.0.2")
	for _, tc := range []struct {
		name     string
		topology envoy.Topology
		change   func(*envoy.Group)
		gateways []envoy.Gateway
		moved    []string
	}{
		{"nothing", envoy.InLine, func(*envoy.Group) {}, []envoy.Gateway{one, two}, nil},
		{"the order of gateways", envoy.InLine, func(*envoy.Group) {}, []envoy.Gateway{two, one}, nil},
		{"a gateway twice", envoy.InLine, func(*envoy.Group) {}, []envoy.Gateway{one, two, one}, nil},
		{"a gateway leaves", envoy.InLine, func(*envoy.Group) {}, []envoy.Gateway{two}, []string{resource.EndpointType}},
		{"no gateway", envoy.ExtProc, func(*envoy.Group) {}, nil, []string{resource.EndpointType}},
		{"another address", envoy.InLine, func(g *envoy.Group) { g.Listen = netip.MustParseAddrPort("0.0.0.0:10001") }, []envoy.Gateway{one, two}, []string{resource.ListenerType}},
		{"another platform", envoy.ExtProc, func(g *envoy.Group) { g.Platform.Host = "b.example" }, []envoy.Gateway{one, two}, []string{resource.RouteType, resource.ClusterType}},
		{"another platform, in line", envoy.InLine, func(g *envoy.Group) { g.Platform.Host = "b.example" }, []envoy.Gateway{one, two}, nil},
		{"a longer call", envoy.ExtProc, func(g *envoy.Group) { g.Call = 2 * time.Minute }, []envoy.Gateway{one, two}, []string{resource.ListenerType, resource.RouteType}},
		{"a longer call, in line", envoy.InLine, func(g *envoy.Group) { g.Call = 2 * time.Minute }, []envoy.Gateway{one, two}, []string{resource.RouteType}},
		{"an access log in a file", envoy.InLine, func(g *envoy.Group) { g.AccessLog = "/var/log/envoy/access.log" }, []envoy.Gateway{one, two}, []string{resource.ListenerType}},
		{
			"tracing", envoy.InLine, func(g *envoy.Group) { g.Tracing.URL = "http://collector.example/v1/traces" },
			[]envoy.Gateway{one, two},
			[]string{resource.ListenerType, resource.ClusterType},
		},
		{
			"TLS to gateways", envoy.InLine, func(g *envoy.Group) { g.Data = envoy.Peer{Name: "gateway.example"} },
			[]envoy.Gateway{one, two},
			[]string{resource.ClusterType},
		},
		{
			"TLS to callers", envoy.InLine, func(g *envoy.Group) {
				g.Certificates = []envoy.Certificate{{Chain: []byte("chain"), Key: []byte("key")}}
			},
			[]envoy.Gateway{one, two},
			[]string{resource.ListenerType, resource.SecretType},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := versions(snapshot(t, group(tc.topology), one, two))
			g := group(tc.topology)
			tc.change(&g)
			after := versions(snapshot(t, g, tc.gateways...))
			for _, typeURL := range tc.moved {
				if before[typeURL] == after[typeURL] {
					t.Errorf("%s is still %s", typeURL, after[typeURL])
				}
				delete(before, typeURL)
				delete(after, typeURL)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("versions (-before +after):\n%s", diff)
			}
		})
	}
}

// Envoy's validators see messages that are packed into others, too.
func TestWhatEnvoyWouldRefuseIsNotServed(t *testing.T) {
	for name, change := range map[string]func(*envoy.Group){
		"a time-out within a filter within a listener": func(g *envoy.Group) { g.Call = -time.Hour },
		"a name within TLS within a cluster":           func(g *envoy.Group) { g.Platform.Host = strings.Repeat("a", 300) },
	} {
		t.Run(name, func(t *testing.T) {
			g := group(envoy.ExtProc)
			change(&g)
			if s, err := g.Snapshot(nil); err == nil {
				t.Errorf("snapshot = %v, want an error", s)
			}
		})
	}
}

// Private keys are in the snapshot and nowhere else.
func TestRenderLeavesPrivateKeysOut(t *testing.T) {
	g := group(envoy.InLine)
	g.Certificates = []envoy.Certificate{{Chain: []byte("the chain"), Key: []byte("the private key")}}
	s := snapshot(t, g, gateway("10.0.0.1"))
	if !strings.Contains(fmt.Sprint(s.GetResources(resource.SecretType)["callers"]), "the private key") {
		t.Error("the secret has no private key")
	}
	texts, err := envoy.Render(s)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Cluster tollgate", "ClusterLoadAssignment tollgate", "Listener callers", "RouteConfiguration callers", "Secret callers"}
	for _, name := range want {
		if texts[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	// Bytes are in base64.
	if secret := texts["Secret callers"]; !strings.Contains(secret, "dGhlIGNoYWlu") || strings.Contains(secret, "dGhlIHByaXZhdGUga2V5") || strings.Contains(secret, "private_key") {
		t.Errorf("secret = %s, want the chain and no key", secret)
	}
	if len(texts) != len(want) {
		t.Errorf("%d resources, want %d", len(texts), len(want))
	}
}

// The credentials for a receiver of spans reach Envoys, and is not rendered.
func TestRenderLeavesTokensOut(t *testing.T) {
	g := group(envoy.ExtProc)
	g.Tracing = envoy.Tracing{
		URL: "https://collector.example/v1/traces", Headers: map[string]string{"a": `to"ken]`, "b": "token"}, CA: []byte("the authority"),
		Certificate: []byte("the chain"), Key: []byte("the private key"), Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}
	s := snapshot(t, g)
	if !strings.Contains(fmt.Sprint(s.GetResources(resource.ListenerType)["callers"]), "ken]") {
		t.Error("the listener has no token")
	}
	texts, err := envoy.Render(s)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(texts["Listener callers"], `"value": "left out"`); n != 4 { // two headers in two filter chains
		t.Errorf("%d headers are left out, want 4: %s", n, texts["Listener callers"])
	}
	for name, text := range texts {
		if strings.Contains(text, "ken") && strings.Contains(text, "to\"") || strings.Contains(text, `"token"`) || strings.Contains(text, "dGhlIHByaXZhdGUga2V5") {
			t.Errorf("%s shows what the receiver is shown: %s", name, text)
		}
	}
}

// A bootstrap passes the validators, and answers at the callers' address by
// itself only where Linux prefers the other socket.
func TestBootstrap(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*envoy.Bootstrap)
		want   []string
		not    []string
	}{
		"plain":     {func(*envoy.Bootstrap) {}, []string{`"cluster": "edge"`, `"DELTA_GRPC"`, `"::ffff:0.0.0.0"`, `"10.0.0.2"`}, []string{"secrets"}},
		"over IPv6": {func(b *envoy.Bootstrap) { b.Listen = netip.MustParseAddrPort("[::]:10000") }, nil, []string{"closed"}},
		"with TLS": {func(b *envoy.Bootstrap) {
			b.Peer, b.Files = envoy.Peer{Name: "g.example"}, envoy.Files{Certificate: "/c", Key: "/k", CA: "/a"}
		}, []string{`"tollgate_client"`, `"/a"`}, nil},
		"by names":   {func(b *envoy.Bootstrap) { b.NamedDoors = []envoy.NamedServer{{Host: "tollgate-envoy", Port: 8082}} }, []string{`"STRICT_DNS"`, `"tollgate-envoy"`, `"10.0.0.2"`}, nil},
		"admin port": {func(b *envoy.Bootstrap) { b.Admin = netip.MustParseAddrPort("127.0.0.1:9") }, []string{`"port_value": 9`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := envoy.Bootstrap{
				Node: "e1", Group: "edge", Listen: netip.MustParseAddrPort("0.0.0.0:10000"), Admin: netip.MustParseAddrPort("127.0.0.1:9901"),
				Doors: []netip.AddrPort{gateway("10.0.0.1").Door, gateway("10.0.0.2").Door}, Connections: 10,
			}
			tc.change(&b)
			text, err := b.JSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range tc.want {
				if !strings.Contains(text, part) {
					t.Errorf("no %s in %s", part, text)
				}
			}
			for _, part := range tc.not {
				if strings.Contains(text, part) {
					t.Errorf("%s in %s", part, text)
				}
			}
		})
	}
}
