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
	"github.com/tollgate-dev/tollgate/policies/catalog"
)

// Each gateway announces itself every announceEvery. A gateway that has not announced itself for announceEnds is considered gone.
const announceEvery, announceEnds = 10 * time.Second, 35 * time.Second

// Backlog describes the records of a component that receivers have not accepted, and its log files that cannot be rotated.
type Backlog interface{ Undelivered() []string }

// Fleet describes the gateways that share a store. All fields except Backlogs are required.
type Fleet struct {
	Redis store.Client
	// Key is the Redis key under which gateways announce themselves.
	Key string
	// Instance and Version identify this gateway.
	Instance, Version string
	// Since is the start time of this process.
	Since time.Time
	// Envoys is the server of the Envoys connected to this gateway.
	Envoys *envoy.Server
	// Status is the state of the configuration in force, Engines holds its policies, and Prices the price lists.
	Status   *GatewayStatus
	Engines  *EngineFactory
	Prices   *catalog.Catalog
	Backlogs []Backlog
	// Unserved lists the operations that the platform's newer API description contains and that this gateway refuses.
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
		Restart: r.Restart, Since: f.Since.UTC(), Envoys: len(f.Envoys.Nodes()), At: f.Now().UTC(), Unserved: f.Unserved(),
	}
	for _, b := range f.Backlogs {
		self.Undelivered = append(self.Undelivered, b.Undelivered()...)
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

// Announce announces this gateway until ctx ends, and then its end. It ignores errors of the store, which other components report.
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
