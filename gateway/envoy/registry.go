package envoy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/store"
)

const (
	// beatEvery is the interval between two renewals of a gateway's registration. With each renewal, the gateway reads the registry.
	beatEvery = 500 * time.Millisecond
	// registered is the time for which a gateway counts as ready after it last renewed its registration. Health checks detect a killed gateway
	// much earlier.
	registered = 5 * time.Second
)

// Heartbeat is the content of a gateway's entry in the registry.
type Heartbeat struct {
	// Ready is true if the gateway accepts requests.
	Ready bool `json:"ready"`
	// Report describes the Envoys connected to the gateway.
	Report Report `json:"report"`
}

// SendHeartbeat stores the heartbeat own of the gateway self in the registry. It returns a sorted list of all gateways that are ready, and
// the reports of all gateways except self.
func SendHeartbeat(
	ctx context.Context, registry *store.Registry, self Gateway, own Heartbeat,
) (ready []Gateway, others []Report, err error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, nil, fmt.Errorf("registry: %w", err)
	}
	all, err := registry.Heartbeat(ctx, self.String(), text)
	if err != nil {
		return nil, nil, fmt.Errorf("registry: %w", err)
	}
	for name, text := range all {
		var heard Heartbeat
		g, err := ParseGateway(name)
		if err != nil || json.Unmarshal([]byte(text), &heard) != nil {
			continue // gateways of other versions may use another format
		}
		if heard.Ready {
			ready = append(ready, g)
		}
		if g != self {
			others = append(others, heard.Report)
		}
	}
	return sortGateways(ready), others, nil
}

// sortGateways sorts gateways and removes duplicates.
func sortGateways(gateways []Gateway) []Gateway {
	gateways = slices.Clone(gateways)
	slices.SortFunc(gateways, func(a, b Gateway) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(gateways)
}

// String returns the addresses of both listeners, and the zone if it is known.
func (g Gateway) String() string {
	return strings.TrimSuffix(g.Data.String()+" "+g.Door.String()+" "+g.Zone, " ")
}

// ParseGateway parses text in the format of [Gateway.String].
func ParseGateway(text string) (Gateway, error) {
	data, door, _ := strings.Cut(text, " ")
	door, zone, _ := strings.Cut(door, " ")
	g := Gateway{Zone: zone}
	var err error
	if g.Data, err = netip.ParseAddrPort(data); err != nil {
		return Gateway{}, err
	}
	g.Door, err = netip.ParseAddrPort(door)
	return g, err
}
