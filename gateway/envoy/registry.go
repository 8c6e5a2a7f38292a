package envoy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// Beat is how often a gateway says that it is ready, and hears of others.
	Beat = 500 * time.Millisecond
	// registered is how long a gateway that says nothing more is taken to be ready;
	// health checks find one that was killed long before.
	registered = 5 * time.Second
)

// Registry is the sorted set in Redis of the gateways that are ready, by when they
// last said so, by the clock of Redis.
type Registry struct {
	Client redis.Cmdable
	Key    string
	// Reports is the key of a hash with the gateways' reports of their Envoys.
	Reports string
}

// Join says that self is ready and returns all gateways that are, in order.
func (r Registry) Join(ctx context.Context, self Gateway) ([]Gateway, error) {
	return r.exchange(ctx, func(p redis.Pipeliner, now time.Time) {
		p.ZAdd(ctx, r.Key, redis.Z{Score: float64(now.UnixMilli()), Member: self.String()})
	})
}

// Leave says that self is not ready and returns all gateways that are, in order.
func (r Registry) Leave(ctx context.Context, self Gateway) ([]Gateway, error) {
	return r.exchange(ctx, func(p redis.Pipeliner, _ time.Time) { p.ZRem(ctx, r.Key, self.String()) })
}

func (r Registry) exchange(ctx context.Context, say func(redis.Pipeliner, time.Time)) ([]Gateway, error) {
	now, err := r.Client.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	var all *redis.StringSliceCmd
	_, err = r.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		say(p, now)
		p.ZRemRangeByScore(ctx, r.Key, "-inf", strconv.FormatInt(now.Add(-registered).UnixMilli(), 10))
		p.PExpire(ctx, r.Key, registered)
		all = p.ZRange(ctx, r.Key, 0, -1)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	var gateways []Gateway
	for _, text := range all.Val() {
		if g, err := ParseGateway(text); err == nil { // one of another version may say it otherwise
			gateways = append(gateways, g)
		}
	}
	return Sorted(gateways), nil
}

// dated is a Report as it is written, with the time of the clock of Redis in ms.
type dated struct {
	At int64 `json:"at"`
	Report
}

// Share shares self's report of its Envoys and returns those of other gateways.
func (r Registry) Share(ctx context.Context, self Gateway, own Report) ([]Report, error) {
	now, err := r.Client.Time(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	text, err := json.Marshal(dated{now.UnixMilli(), own})
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	var all *redis.MapStringStringCmd
	_, err = r.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, r.Reports, self.String(), text)
		p.PExpire(ctx, r.Reports, registered)
		all = p.HGetAll(ctx, r.Reports)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	var reports []Report
	var gone []string
	for name, text := range all.Val() {
		var told dated
		switch err := json.Unmarshal([]byte(text), &told); {
		case name == self.String():
		case err != nil || told.At <= now.Add(-registered).UnixMilli():
			gone = append(gone, name)
		default:
			reports = append(reports, told.Report)
		}
	}
	if len(gone) == 0 {
		return reports, nil
	}
	if err := r.Client.HDel(ctx, r.Reports, gone...).Err(); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return reports, nil
}

// Sorted returns gateways in order, each once.
func Sorted(gateways []Gateway) []Gateway {
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
