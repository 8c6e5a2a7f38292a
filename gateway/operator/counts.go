package operator

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Counts are the counters of one gateway.
type Counts struct {
	// Limiter counts calls against quotas.
	Limiter *ratelimit.Limiter
	// Guard counts wrong keys of callers by address, Attempts wrong tokens of admins.
	Guard    *filter.Guard
	Attempts *ratelimit.AddressLimiter
	// Shares divides the platform's own limit between callers.
	Shares *ratelimit.Upstream

	metrics *Instruments
}

// CountsDeps are the parts that counters need. All are required.
type CountsDeps struct {
	Store  ratelimit.Store
	Now    func() time.Time
	Logger *slog.Logger
	Meter  metric.Meter
	// Gateway names this gateway among the gateways that share the store.
	Gateway string
}

// clock is a function as the limiters' clock.
type clock func() time.Time

// Now implements ratelimit.Clock.
func (c clock) Now() time.Time { return c() }

// NewCounts makes the counters of a configuration. It does not dial.
func NewCounts(cfg *settings.Config, deps CountsDeps) (*Counts, error) {
	c, now := new(Counts), clock(deps.Now)
	var err error
	if c.metrics, err = NewInstruments(deps.Meter); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	quota := cfg.Limits.Config
	quota.Gateway = deps.Gateway
	c.Limiter, err = ratelimit.New(quota, ratelimit.Deps{Store: deps.Store, Clock: now, Logger: deps.Logger, ObserveLatency: c.metrics.Timed})
	if err == nil {
		err = c.metrics.Follow(c.Limiter)
	}
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	failures, err := ratelimit.NewAddressLimiter(cfg.Limits.Anonymous, now)
	if err != nil {
		return nil, err
	}
	keyless, err := ratelimit.NewAddressLimiter(cfg.Legacy.Keyless.Limit, now)
	if err != nil {
		return nil, err
	}
	c.Guard = filter.NewGuard(failures, keyless, cfg.Limits.AnonymousExempt)
	if c.Attempts, err = ratelimit.NewAddressLimiter(ratelimit.DefaultAddressConfig(), now); err != nil {
		return nil, err
	}
	c.Shares = ratelimit.NewUpstream(cfg.Limits.FairShare, now)
	return c, nil
}

// Run counts until ctx ends. It ends the metrics of the limiter, too.
func (c *Counts) Run(ctx context.Context) error {
	err := c.Limiter.Run(ctx)
	c.metrics.Stop()
	return err
}
