package ratelimit

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Mode selects how calls are counted.
type Mode string

// Modes of counting.
const (
	// ModeExact counts every call in the store. Calls that wait at the same time share an exchange.
	ModeExact Mode = "exact"
	// ModeLeased leases blocks of permits from the store and spends them on the gateway.
	ModeLeased Mode = "leased"
)

// Failure selects how a call is decided while the store is unavailable.
type Failure string

// Failure policies.
const (
	// FailClosed refuses the call with ErrUnavailable.
	FailClosed Failure = "closed"
	// FailLocal counts the call against this gateway's share of the quota: (left - unseen) / gateways. left is the number of units last known
	// to be left, unseen the number of units that other gateways may use before they learn about this gateway's calls, and gateways the number
	// of gateways. The store is charged for these units when it is available again.
	FailLocal Failure = "local"
	// FailOpen admits the call without counting it.
	FailOpen Failure = "open"
)

// Valid reports whether f is one of the failure policies.
func (f Failure) Valid() bool {
	switch f {
	case FailClosed, FailLocal, FailOpen:
		return true
	}
	return false
}

// Config configures a Limiter. It does not include quotas, which come with each call. Start from [DefaultConfig]. Fields that a file
// cannot set are for tests and simulations.
type Config struct {
	Mode     Mode          `yaml:"mode" doc:"counting mode: exact (count every call in Redis) or leased (take blocks of permits from Redis)"`
	Timeout  time.Duration `yaml:"timeout" doc:"time limit for one exchange with Redis, not including the time to connect"`
	Gateways int           `yaml:"gateways" doc:"maximum number of gateways that share Redis. The failure policy local divides quotas by this number"`
	Failure  FailureConfig `yaml:"failure" doc:"policy for each class of calls when Redis is unavailable" reload:"live"`
	Lease    LeaseConfig   `yaml:"lease" doc:"settings of mode leased"`

	// Gateway is the unique name of this gateway among the gateways that share the store. An empty name is replaced by a random one.
	Gateway string        `yaml:"-"`
	Commit  CommitConfig  `yaml:"-"`
	Breaker BreakerConfig `yaml:"-"`
	Memory  MemoryConfig  `yaml:"-"`
}

// FailureConfig is the failure policy for each class of call.
type FailureConfig struct {
	Read  Failure `yaml:"read" doc:"failure policy for calls that change nothing: closed, local or open"`
	Write Failure `yaml:"write" doc:"failure policy for calls that change resources or cost money: closed, local or open. Calls that lower cost are always allowed"`
}

// CommitConfig limits group commit: exact calls that wait at the same time share an exchange.
type CommitConfig struct {
	// MaxInFlight is the number of concurrent exchanges per group of organisations. A larger number shortens the wait for a slow exchange;
	// a smaller number makes larger groups.
	MaxInFlight int
	// MaxBatch is the largest number of calls in one exchange.
	MaxBatch int
}

// LeaseConfig configures leased permits. Only ModeLeased uses it.
type LeaseConfig struct {
	Horizon time.Duration `yaml:"horizon" doc:"time that a block of permits lasts at the recent rate of calls. Use 2s if the round trip to Redis takes more than 50 ms"`

	// Max is the largest block of one window, in units.
	Max int64 `yaml:"-"`
	// Share is the part of the units left in a window, in percent, that all live gateways together may hold. Near the end of a quota,
	// blocks therefore shrink to nothing and every call is counted exactly.
	Share int `yaml:"-"`
	// Idle is the time after which unused permits are returned.
	Idle time.Duration `yaml:"-"`
	// Margin is subtracted from the end of a window to compensate for clocks that run at slightly different rates.
	Margin time.Duration `yaml:"-"`
}

// BreakerConfig configures when a store is considered down.
type BreakerConfig struct {
	// Failures is the number of consecutive exchanges that must fail.
	Failures int
	// Cooldown is the time until an exchange is tried again. It doubles with each failed attempt, up to MaxCooldown, and is extended by up
	// to a quarter at random so that gateways do not retry simultaneously.
	Cooldown, MaxCooldown time.Duration
}

// MemoryConfig limits a gateway's memory of the store's answers.
type MemoryConfig struct {
	// Scopes is the largest number of scopes remembered, over all organisations, at about 400 bytes each.
	Scopes int
	// Refusal is the time that a full window is assumed to remain full without asking the store again. 0 means the following: in ModeExact
	// until the window ends or an operator resets it; in ModeLeased one second, because other gateways return permits.
	Refusal time.Duration
}

// DefaultConfig returns the default configuration: ModeExact, FailLocal for reads and FailClosed for writes.
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

// CheckGateway returns an error unless name can name a gateway: it must be valid for CheckID and must not contain a vertical bar.
func CheckGateway(name string) error {
	if strings.Contains(name, "|") {
		return fmt.Errorf("must not contain |, got %q", name)
	}
	return CheckID(name)
}

// Validate checks the settings of c and joins the errors it finds, each with its path below the configuration of the limiter. It does
// not check the fields that a file cannot set.
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
