package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// Each gateway announces itself every announceEvery. After a silence of announceEnds it is taken to be gone.
const announceEvery, announceEnds = 10 * time.Second, 35 * time.Second

// Fleet is the gateways that share a store, as operators see them. All fields but Undelivered and Unserved are required.
type Fleet struct {
	Redis store.Client
	// Key is where gateways announce themselves.
	Key string
	// Instance and Version are this gateway's.
	Instance, Version string
	// Since is when this process began.
	Since time.Time
	// Envoys counts those that are connected to this gateway, and Groups describes the groups of Envoys.
	Envoys func() int
	Groups func() []envoy.GroupStatus
	// Status is the state of the configuration in force, and Policies that of the organisations' policies.
	Status   *GatewayStatus
	Policies func() []PolicyStatus
	// Undelivered describes the records that receivers have not taken; nil is none.
	Undelivered func() []string
	// Unserved lists the operations of the platform that this gateway refuses; nil is none.
	Unserved func() []string
	*view.Current
}

// registry has the gateways that announce themselves.
func (f *Fleet) registry() *store.Registry {
	return &store.Registry{Client: f.Redis, Key: f.Key, TTL: announceEnds}
}

// self describes this gateway.
func (f *Fleet) self() Instance {
	r := f.Status.Report()
	self := Instance{Instance: f.Instance, Version: f.Version, Revision: r.Revision, Loaded: r.Loaded.UTC(), Fault: r.Why(), Restart: r.Restart, Since: f.Since.UTC(), Envoys: f.Envoys(), At: f.Now().UTC()}
	if f.Undelivered != nil {
		self.Undelivered = f.Undelivered()
	}
	if f.Unserved != nil {
		self.Unserved = f.Unserved()
	}
	return self
}

// Gateways lists the running gateways, this one first. With an error the list has this one alone.
func (f *Fleet) Gateways(ctx context.Context) ([]Instance, error) {
	self := f.self()
	ctx, cancel := context.WithTimeout(ctx, f.Config().Limits.Timeout)
	defer cancel()
	members, err := f.registry().Members(ctx)
	var others []Instance
	for name, text := range members {
		var other Instance
		if json.Unmarshal([]byte(text), &other) == nil && name != self.Instance {
			others = append(others, other)
		}
	}
	slices.SortFunc(others, func(a, b Instance) int { return cmp.Compare(a.Instance, b.Instance) })
	return append([]Instance{self}, others...), err
}

// Announce announces this gateway until ctx ends. It reports no fault of the store: others do.
func (f *Fleet) Announce(ctx context.Context) error {
	beat := time.NewTicker(announceEvery)
	defer beat.Stop()
	for {
		f.announceOnce(ctx)
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = f.registry().Leave(last, f.Instance)
			return nil
		case <-beat.C:
		}
	}
}

// announceOnce announces this gateway once.
func (f *Fleet) announceOnce(ctx context.Context) {
	text := telemetry.Must(json.Marshal(f.self()))
	ctx, cancel := context.WithTimeout(ctx, f.Config().Limits.Timeout)
	defer cancel()
	_, _ = f.registry().Heartbeat(ctx, f.Instance, text)
}
