package main

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
)

func TestGatewaysOfABootstrap(t *testing.T) {
	t.Parallel()
	known := []envoy.Gateway{{Door: netip.MustParseAddrPort("10.0.0.7:8082")}}
	for name, tc := range map[string]struct {
		given []string
		known []envoy.Gateway
		want  envoy.Bootstrap
		fault string
	}{
		"known":     {nil, known, envoy.Bootstrap{Doors: []netip.AddrPort{known[0].Door}}, ""},
		"none":      {nil, nil, envoy.Bootstrap{}, "the configuration contains no addresses of gateways: pass the addresses with --gateway"},
		"addresses": {[]string{"10.0.0.8:1", "[::1]:2"}, known, envoy.Bootstrap{Doors: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.8:1"), netip.MustParseAddrPort("[::1]:2")}}, ""},
		"names":     {[]string{"gw.example.:8082", "tollgate-envoy:1"}, nil, envoy.Bootstrap{NamedDoors: []envoy.NamedServer{{Host: "gw.example.", Port: 8082}, {Host: "tollgate-envoy", Port: 1}}}, ""},
		"no port":   {[]string{"gateway"}, nil, envoy.Bootstrap{}, "--gateway: address gateway: missing port in address"},
		"port 0":    {[]string{"gateway:0"}, nil, envoy.Bootstrap{}, `--gateway "gateway:0" must be an IP address or DNS name with a port, such as tollgate-envoy:8082`},
		"bad port":  {[]string{"gateway:http"}, nil, envoy.Bootstrap{}, `--gateway "gateway:http" must be an IP address or DNS name with a port, such as tollgate-envoy:8082`},
		"bad IP":    {[]string{"10.0.0.256:1"}, nil, envoy.Bootstrap{}, `--gateway "10.0.0.256:1" must be an IP address or DNS name with a port, such as tollgate-envoy:8082`},
		"URL":       {[]string{"http://gateway:1"}, nil, envoy.Bootstrap{}, "--gateway: address http://gateway:1: too many colons in address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got envoy.Bootstrap
			fault := ""
			if err := addDoors(&got, tc.given, tc.known); err != nil {
				fault = err.Error()
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.AddrPort{})); fault != tc.fault || diff != "" {
				t.Errorf("fault %q, want %q (-want +got):\n%s", fault, tc.fault, diff)
			}
		})
	}
}
