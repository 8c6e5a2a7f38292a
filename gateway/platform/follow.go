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
	// followTime is the time limit for reading the platform's API description.
	followTime = 30 * time.Second
	// maxRefused is the maximum number of operations that [Follower.Refused] returns.
	maxRefused = 100
)

// Follower finds operations that the platform serves but the gateway does not know. To do so, it compares the platform's API description
// with the gateway's own. It is safe for concurrent use.
type Follower struct {
	api     *schema.API
	read    func(ctx context.Context) ([]byte, error)
	logger  *slog.Logger
	refused atomic.Pointer[[]string]
}

// NewFollower returns a Follower. read returns the platform's API description. NewFollower registers a metric with m.
func NewFollower(api *schema.API, read func(ctx context.Context) ([]byte, error), logger *slog.Logger, m metric.Meter) *Follower {
	f := &Follower{api: api, read: read, logger: logger}
	telemetry.Must(m.Int64ObservableGauge("tollgate.platform.operation.refused",
		metric.WithDescription("1 for each operation in the platform's API description that the gateway does not know and therefore refuses."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, name := range f.Refused() {
				o.Observe(1, metric.WithAttributes(attribute.String("operation", name)))
			}
			return nil
		})))
	return f
}

// Refused returns the method and path of at most 100 operations that the gateway refuses because it does not know them. The result is empty
// until [Follower.Run] has read the platform's API description.
func (f *Follower) Refused() []string {
	if list := f.refused.Load(); list != nil {
		return *list
	}
	return nil
}

// Run reads the platform's API description once, and returns when ctx ends. If Run cannot read the description, it logs the error and does
// not change Refused.
func (f *Follower) Run(ctx context.Context) error {
	f.update(ctx)
	<-ctx.Done()
	return nil
}

func (f *Follower) update(ctx context.Context) {
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
		f.logger.InfoContext(ctx, "cannot read the platform's API description to find unknown operations", "error", err)
	case len(list) > 0:
		list = slices.Clip(list[:min(len(list), maxRefused)])
		f.refused.Store(&list)
		f.logger.WarnContext(ctx, "platform has unknown operations, which this gateway refuses; run 'tollgate platform diff'", "operations", list)
	}
}
