package ratelimit

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Mode says how calls are counted.
type Mode string

// The modes.
const (
	// ModeExact asks the store for every call; calls that wait at the same
	// instant travel together.
	ModeExact Mode = "exact"
	// ModeLeased takes blocks of permits from the store and spends them here.
	ModeLeased Mode = "leased"
)

// Failure sets the treatment of a call when the store cannot be asked.
type Failure string

// The failure policies.
const (
	// FailClosed refuses with ErrUnavailable.
	FailClosed Failure = "closed"
	// FailLocal counts the call against this gateway's share of the quota: the
	// units last known to be left, without the units that other gateways may use before they
	// hear of this one's, divided by the number of gateways. Units admitted so are
	// charged to the store when it is back.
	FailLocal Failure = "local"
	// FailOpen admits the call uncounted.
	FailOpen Failure = "open"
)

// Valid reports whether f is one of the policies above.
func (f Failure) Valid() bool {
	switch f {
	case FailClosed, FailLocal, FailOpen:
		return true
	}
	return false
}

// Config is how a Limiter counts. Quotas are not part of it: they come with
// each call. Start from [DefaultConfig]. Fields that a file cannot set are for tests
// and simulations.
type Config struct {
	Mode     Mode          `yaml:"mode" doc:"exact or leased"`
	Timeout  time.Duration `yaml:"timeout" doc:"bounds one exchange with the store; connecting has a time of its own"`
	Gateways int           `yaml:"gateways" doc:"the largest number of gateways expected to share the store; the failure policy local gives each that part of a quota"`
	Failure  FailureConfig `yaml:"failure" doc:"the failure policy per class" reload:"live"`
	Lease    LeaseConfig   `yaml:"lease" doc:"how permits are leased; used by mode leased only"`

	// Gateway is the name of this gateway among those sharing the store; it must be
	// unique; empty is a random one.
	Gateway string        `yaml:"-"`
	Commit  CommitConfig  `yaml:"-"`
	Breaker BreakerConfig `yaml:"-"`
	Memory  MemoryConfig  `yaml:"-"`
}

// FailureConfig is the failure policy for each class of call.
type FailureConfig struct {
	Read  Failure `yaml:"read" doc:"for calls that change nothing: closed, local or open"`
	Write Failure `yaml:"write" doc:"for calls that change or cost something: closed, local or open; calls that lower cost always pass"`
}

// CommitConfig bounds group commit: exact calls that wait at the same instant travel
// together.
type CommitConfig struct {
	// MaxInFlight is how many exchanges may be under way at once (per group of
	// organisations). More shortens the wait behind a slow exchange, fewer make larger
	// groups.
	MaxInFlight int
	// MaxBatch is the largest number of calls in one exchange.
	MaxBatch int
}

// LeaseConfig bounds leased permits; mode leased alone uses it.
type LeaseConfig struct {
	Horizon time.Duration `yaml:"horizon" doc:"the time that a gateway provides for: a block covers the calls of as long a time lately. Set 2s where Redis is more than 50 ms away"`

	// Max is the largest block of one window, in units.
	Max int64 `yaml:"-"`
	// Share is the part of the units left in a window, in percent, that all live gateways
	// together may hold. Near the end of a quota blocks therefore shrink to nothing and
	// every call is counted exactly.
	Share int `yaml:"-"`
	// Idle is how long permits may lie unused before they are returned.
	Idle time.Duration `yaml:"-"`
	// Margin is taken off the end of a window, against clocks that do not run at quite
	// the same rate.
	Margin time.Duration `yaml:"-"`
}

// BreakerConfig says when a store is taken to be down.
type BreakerConfig struct {
	// Failures is the number of exchanges that must fail in a row.
	Failures int
	// Cooldown is the time until one exchange is tried again. It doubles while that
	// fails, up to MaxCooldown, and is spread by up to a quarter so that gateways do not
	// come back together.
	Cooldown, MaxCooldown time.Duration
}

// MemoryConfig bounds a gateway's memory of the store's answers.
type MemoryConfig struct {
	// Scopes is the largest number of scopes remembered, of all organisations together,
	// about 400 bytes each.
	Scopes int
	// Refusal is how long a window that was full is taken to be full still, without
	// asking again; 0 is until the window ends in mode exact, or an operator resets it,
	// and a second in mode leased, where other gateways return permits.
	Refusal time.Duration
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Mode:     ModeExact,
		Timeout:  time.Second,
		Gateways: 8,
		Failure:  FailureConfig{Read: FailLocal, Write: FailClosed},
		Commit:   CommitConfig{MaxInFlight: 4, MaxBatch: 256},
		Lease: LeaseConfig{
			Horizon: 500 * time.Millisecond, Max: 10_000, Share: 20,
			Idle: 2 * time.Second, Margin: 5 * time.Millisecond,
		},
		Breaker: BreakerConfig{Failures: 3, Cooldown: 250 * time.Millisecond, MaxCooldown: time.Second},
		Memory:  MemoryConfig{Scopes: 100_000},
	}
}

// CheckGateway refuses an invalid name of a gateway.
func CheckGateway(name string) error {
	if strings.Contains(name, "|") {
		return fmt.Errorf("must not contain |, got %q", name)
	}
	return CheckID(name)
}

// Validate reports every fault of a setting, each with the path of its field below the
// configuration of the limiter. The other fields are those of DefaultConfig.
func (c Config) Validate() error {
	var f fault.Found
	f.If(c.Mode != ModeExact && c.Mode != ModeLeased, "mode", "must be exact or leased, got %q", c.Mode)
	fault.Between(&f, "timeout", c.Timeout, time.Millisecond, time.Minute)
	if c.Gateway != "" {
		f = append(f, fault.At("gateway", CheckGateway(c.Gateway)))
	}
	fault.Between(&f, "gateways", c.Gateways, 1, 10_000)
	f.If(!c.Failure.Read.Valid(), "failure.read", "must be closed, local or open, got %q", c.Failure.Read)
	f.If(!c.Failure.Write.Valid(), "failure.write", "must be closed, local or open, got %q", c.Failure.Write)
	fault.Between(&f, "lease.horizon", c.Lease.Horizon, time.Millisecond, time.Minute)
	return errors.Join(f...)
}
