package envoy

import (
	"net"
	"net/netip"
	"testing"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// Where listen is every address, Envoys are told the one from which Redis is
// reached; else the address in the configuration.
func TestEnvoysAreToldAnAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ listen, advertise, redis, want string }{
		"of listen":       {"10.0.0.7:8080", "", "redis://127.0.0.1:6379", "10.0.0.7"},
		"every IPv4":      {"0.0.0.0:8080", "", "redis://127.0.0.1:6379", "127.0.0.1"},
		"every address":   {":8080", "", "redis://127.0.0.1:6379", "127.0.0.1"},
		"a name of Redis": {"[::]:8080", "", "redis://localhost:6379", "127.0.0.1"},
		"advertised":      {"0.0.0.0:8080", "10.0.0.9", "redis://127.0.0.1:6379", "10.0.0.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &settings.Config{Listen: tc.listen, Redis: settings.Redis{URL: strictyaml.NewSecret(tc.redis)}}
			c.Envoy.XDS.Advertise, _ = netip.ParseAddr(tc.advertise) // the zero Addr is none
			got, err := selfOf(t.Context(), c, &net.TCPAddr{IP: net.IPv6zero, Port: 8080}, &net.TCPAddr{IP: net.IPv4zero, Port: 8082})
			if err != nil {
				t.Fatal(err)
			}
			want := netip.MustParseAddr(tc.want)
			if loopback := got.Data.Addr().IsLoopback() && want.IsLoopback(); got.Data.Addr() != want && !loopback || got.Data.Port() != 8080 || got.Door.Port() != 8082 {
				t.Errorf("Envoys are told %v, want %v with the ports of the listeners", got, want)
			}
		})
	}
}
