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
	// beatEvery is how often a gateway says that it is ready, and hears of others.
	beatEvery = 500 * time.Millisecond
	// registered is how long a gateway that says nothing more is taken to be ready;
	// health checks find one that was killed long before.
	registered = 5 * time.Second
)

// Heartbeat is what a gateway says of itself in the registry, under its text.
type Heartbeat struct {
	// Ready says that it takes requests.
	Ready bool `json:"ready"`
	// Report is about its Envoys.
	Report Report `json:"report"`
}

// SendHeartbeat says what self has to say, and returns the gateways that are ready, in order, and the reports of the others.
func SendHeartbeat(ctx context.Context, registry *store.Registry, self Gateway, own Heartbeat) (ready []Gateway, others []Report, err error) {
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
			continue // a gateway of another version may say it otherwise
		}
		if heard.Ready {
			ready = append(ready, g)
		}
		if g != self {
			others = append(others, heard.Report)
		}
	}
	return SortGateways(ready), others, nil
}

// SortGateways returns gateways in order, each once.
func SortGateways(gateways []Gateway) []Gateway {
	gateways = slices.Clone(gateways)
	slices.SortFunc(gateways, func(a, b Gateway) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(gateways)
}

// String writes the addresses of both doors, and the zone if there is one.
func (g Gateway) String() string {
	return strings.TrimSuffix(g.Data.String()+" "+g.Door.String()+" "+g.Zone, " ")
}

// ParseGateway reads the text that String wrote.
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
