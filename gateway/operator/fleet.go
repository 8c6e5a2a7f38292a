package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// Each gateway announces itself every announceEvery. A gateway that has not announced itself for announceEnds is considered gone.
const announceEvery, announceEnds = 10 * time.Second, 35 * time.Second

// Fleet describes the gateways that share a store. All fields except Undelivered and Unserved are required.
type Fleet struct {
	Redis store.Client
	// Key is the Redis key under which gateways announce themselves.
	Key string
	// Instance and Version identify this gateway.
	Instance, Version string
	// Since is the start time of this process.
	Since time.Time
	// Envoys returns the number of Envoys connected to this gateway. Groups describes the groups of Envoys.
	Envoys func() int
	Groups func() []envoy.GroupStatus
	// Status is the state of the configuration in force. Policies returns the status of the organisations' policies.
	Status   *GatewayStatus
	Policies func() []PolicyStatus
	// Undelivered describes records that receivers have not accepted; nil means none.
	Undelivered func() []string
	// Unserved lists the operations that the platform's newer API description contains and that this gateway refuses; nil means none.
	Unserved func() []string
	*view.Current
}

// registry returns the registry of the gateways that share the store.
func (f *Fleet) registry() *store.Registry {
	return &store.Registry{Client: f.Redis, Key: f.Key, TTL: announceEnds}
}

// self describes this gateway.
func (f *Fleet) self() Instance {
	r := f.Status.Report()
	self := Instance{
		Instance: f.Instance, Version: f.Version, Revision: r.Revision, Loaded: r.Loaded.UTC(), Fault: r.Problem(),
		Restart: r.Restart, Since: f.Since.UTC(), Envoys: f.Envoys(), At: f.Now().UTC(),
	}
	if f.Undelivered != nil {
		self.Undelivered = f.Undelivered()
	}
	if f.Unserved != nil {
		self.Unserved = f.Unserved()
	}
	return self
}

// Gateways returns the running gateways, this one first. If it returns an error, the list contains only this gateway.
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

// Announce announces this gateway until ctx ends, and returns context.Cause(ctx). It ignores errors of the store, which other components
// report.
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
	text, _ := json.Marshal(f.self()) // texts, numbers and times
	ctx, cancel := context.WithTimeout(ctx, f.Config().Limits.Timeout)
	defer cancel()
	_, _ = f.registry().Heartbeat(ctx, f.Instance, text)
}
