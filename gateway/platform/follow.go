package platform

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

const (
	// followTime bounds the reading of the platform's description.
	followTime = 30 * time.Second
	// maxRefused bounds the operations that are named.
	maxRefused = 100
)

// Follower finds the operations that the platform offers and the gateway refuses, in the description that the platform serves. It is
// safe for concurrent use.
type Follower struct {
	api     *schema.API
	read    func(ctx context.Context) ([]byte, error)
	logger  *slog.Logger
	refused atomic.Pointer[[]string]
}

// NewFollower returns a Follower that reads the platform's description by read, and measures with m.
func NewFollower(api *schema.API, read func(ctx context.Context) ([]byte, error), logger *slog.Logger, m metric.Meter) *Follower {
	f := &Follower{api: api, read: read, logger: logger}
	telemetry.Must(m.Int64ObservableGauge("tollgate.platform.operation.refused",
		metric.WithDescription("1 for each operation of the platform's description that this gateway does not know, and refuses."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, name := range f.Refused() {
				o.Observe(1, metric.WithAttributes(attribute.String("operation", name)))
			}
			return nil
		})))
	return f
}

// Refused lists the operations as method and path, at most 100; it is empty before the description was read.
func (f *Follower) Refused() []string {
	if list := f.refused.Load(); list != nil {
		return *list
	}
	return nil
}

// Run reads the description once, and ends with ctx. A description that cannot be read is logged and changes nothing.
func (f *Follower) Run(ctx context.Context) error {
	f.look(ctx)
	<-ctx.Done()
	return nil
}

func (f *Follower) look(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	text, err := f.read(bounded)
	var list []string
	if err == nil {
		list, err = f.api.MissingOperations(text)
	}
	switch {
	case ctx.Err() != nil && err != nil:
	case err != nil:
		f.logger.InfoContext(ctx, "the platform's description was not read: it may have operations that this gateway refuses", "error", err)
	case len(list) > 0:
		list = slices.Clip(list[:min(len(list), maxRefused)])
		f.refused.Store(&list)
		f.logger.WarnContext(ctx, "the platform offers operations that this gateway refuses; see tollgate platform diff", "operations", list)
	}
}
