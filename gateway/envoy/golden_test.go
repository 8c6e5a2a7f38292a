package envoy_test

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
)

var update = flag.Bool("update", false, "rewrite golden files") //nolint:gochecknoglobals // a flag

// What Envoys are told, whole: one group of each topology with everything that can be
// configured, spans of a group that sends them, and the bootstrap.
func TestGolden(t *testing.T) {
	peer := envoy.Peer{Name: "gateway.example", Secrets: "/etc/envoy/tollgate"}
	for _, topology := range []envoy.Topology{envoy.InLine, envoy.ExtProc} {
		g := group(topology)
		g.Certificates, g.HTTP3, g.TrustedHops = []envoy.Certificate{{Chain: []byte("the chain"), Key: []byte("the key")}}, true, 1
		g.Data, g.Door = peer, peer
		g.Runs = envoy.Runs{Paths: "/v2/[^/]+/run", Balanced: "/lb/", Domain: "*.lb.example.com"}
		golden(t, string(topology), rendered(t, g))
	}
	traced := group(envoy.ExtProc)
	traced.Tracing = envoy.Tracing{
		URL: "https://collector.example:4318/v1/traces", Headers: map[string]string{"authorization": `the "token"`, "tenant": "acme"}, Ratio: 0.01,
		Certificate: []byte("the client's chain"), Key: []byte("the client's key"),
		Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/64")},
	}
	golden(t, "tracing", rendered(t, traced))
	boot := envoy.Bootstrap{
		Node: "e1", Group: "edge", Listen: netip.MustParseAddrPort("0.0.0.0:10000"), Admin: netip.MustParseAddrPort("127.0.0.1:9901"),
		Doors: []netip.AddrPort{gateway("10.0.0.1").Door}, Connections: 10_000, Heap: 1 << 30, Token: "the token of Envoys",
		Peer: envoy.Peer{Name: "gateway.example"}, Files: envoy.Files{Certificate: "/etc/envoy/tls.crt", Key: "/etc/envoy/tls.key", CA: "/etc/envoy/ca.crt"},
	}
	text, err := boot.JSON()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "bootstrap", text)
	files, err := boot.Files.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		golden(t, name, text)
	}
}

// rendered is the snapshot of a group before two gateways.
func rendered(t *testing.T, g envoy.Group) string {
	t.Helper()
	texts, err := envoy.Render(snapshot(t, g, gateway("10.0.0.1"), gateway("10.0.0.2")))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "# %s\n%s", name, texts[name])
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".golden"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
