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
	// followTime limits the time to read the platform's description.
	followTime = 30 * time.Second
	// maxRefused limits the number of operations that are listed.
	maxRefused = 100
)

// Follower compares the API description served by the platform with the operations the gateway knows. It is safe for concurrent
// use.
type Follower struct {
	api     *schema.API
	read    func(ctx context.Context) ([]byte, error)
	logger  *slog.Logger
	refused atomic.Pointer[[]string]
}

// NewFollower returns a Follower that reads the platform's description with read and registers its metric with m.
func NewFollower(api *schema.API, read func(ctx context.Context) ([]byte, error), logger *slog.Logger, m metric.Meter) *Follower {
	f := &Follower{api: api, read: read, logger: logger}
	telemetry.Must(m.Int64ObservableGauge("tollgate.platform.operation.refused",
		metric.WithDescription("1 for each operation in the platform's API description that the gateway refuses because it is unknown."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, name := range f.Refused() {
				o.Observe(1, metric.WithAttributes(attribute.String("operation", name)))
			}
			return nil
		})))
	return f
}

// Refused returns the operations the gateway refuses because it does not know them, as method and path, at most 100. It is empty
// until the description has been read.
func (f *Follower) Refused() []string {
	if list := f.refused.Load(); list != nil {
		return *list
	}
	return nil
}

// Run reads the description once and returns when ctx ends. If the description cannot be read, the error is logged and Refused does
// not change.
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
		f.logger.InfoContext(ctx, "cannot read the platform's API description: cannot detect operations that this gateway refuses", "error", err)
	case len(list) > 0:
		list = slices.Clip(list[:min(len(list), maxRefused)])
		f.refused.Store(&list)
		f.logger.WarnContext(ctx, "platform offers operations that this gateway refuses; run 'tollgate platform diff'", "operations", list)
	}
}
