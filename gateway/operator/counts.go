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

// Limiters are the rate limiters of one gateway.
type Limiters struct {
	// Limiter enforces quotas.
	Limiter *ratelimit.Limiter
	// Guard limits invalid keys of callers by address, and Attempts limits invalid admin tokens.
	Guard    *filter.Guard
	Attempts *ratelimit.AddressLimiter
	// Shares divides the platform's own rate limit between teams.
	Shares *ratelimit.Upstream

	metrics *Instruments
}

// LimitersDeps holds the dependencies of Limiters. All are required.
type LimitersDeps struct {
	Store  ratelimit.Store
	Now    func() time.Time
	Logger *slog.Logger
	Meter  metric.Meter
	// Gateway identifies this gateway among those that share the store.
	Gateway string
}

// NewLimiters returns the limiters for a configuration. It does not dial.
func NewLimiters(cfg *settings.Config, deps LimitersDeps) (*Limiters, error) {
	c, now := new(Limiters), deps.Now
	var err error
	if c.metrics, err = NewInstruments(deps.Meter); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	quota := cfg.Limits.Config
	quota.Gateway = deps.Gateway
	c.Limiter, err = ratelimit.New(quota, ratelimit.Deps{
		Store: deps.Store, Now: now, Logger: deps.Logger,
		ObserveLatency: c.metrics.RecordDuration,
	})
	if err == nil {
		err = c.metrics.Observe(c.Limiter)
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

// Run runs the limiters until ctx ends, and then unregisters their metrics.
func (c *Limiters) Run(ctx context.Context) error {
	err := c.Limiter.Run(ctx)
	c.metrics.Stop()
	return err
}
