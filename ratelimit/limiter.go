package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Deps are the live things a Limiter works with.
type Deps struct {
	// Store is required.
	Store Store
	// Clock defaults to the machine's.
	Clock Clock
	// Logger hears of the store going away and coming back, once each. Nil
	// discards.
	Logger *slog.Logger
	// Meter gets the metrics described in docs/ratelimits.md. Nil: none.
	Meter metric.Meter
}

// Limiter decides whether calls fit their quotas. It is safe for concurrent use
// and lives as long as the process: changed quotas come with each Take.
type Limiter struct {
	config Config
	store  Store
	clock  Clock
	logger *slog.Logger
	meter  metric.Meter
	commit *commit
}

// New returns a Limiter. It does not dial and starts nothing; see [Limiter.Run].
func New(config Config, deps Deps) (*Limiter, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("ratelimit: %w", err)
	}
	if deps.Store == nil {
		return nil, errors.New("ratelimit: no store")
	}
	l := &Limiter{config: config, store: deps.Store, clock: deps.Clock, logger: deps.Logger, meter: deps.Meter}
	if l.clock == nil {
		l.clock = systemClock{}
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if l.meter == nil {
		l.meter = noop.Meter{}
	}
	l.commit = newCommit(l.store, config, l.clock, l.exchanged)
	return l, nil
}

// Run does the background work of l until ctx ends. A Limiter that is not run
// decides all the same.
func (l *Limiter) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Take counts a call and says whether it may pass. The error is ErrInvalid or
// ErrUnavailable, wrapped; a refusal is not an error.
//
// Once begun, Take is not cut short by ctx: the call may already be charged, and
// its outcome is wanted. It returns within about twice the configured timeout.
func (l *Limiter) Take(ctx context.Context, t Take) (Decision, error) {
	if err := t.check(); err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return l.exact(ctx, &t)
}

// exact asks the store.
func (l *Limiter) exact(ctx context.Context, t *Take) (Decision, error) {
	f := l.commit.get(t)
	defer l.commit.put(f)
	if len(f.op.Scopes) == 0 {
		return Decision{Allowed: true, Source: SourceNone}, nil
	}
	l.commit.fly(ctx, f)
	if f.err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrUnavailable, f.err)
	}
	return decide(f.op.Scopes, f.op.After, f.op.Cost, f.now, f.op.Admitted == 1), nil
}

func (l *Limiter) exchanged(int, time.Duration, error) {}
