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

// Counting modes.
const (
	// ModeExact counts every call in the store. Concurrent calls share round trips.
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
	// FailLocal counts the call against this gateway's share of the quota. The share is (left - unseen) / gateways: the units last known to be
	// left, minus the units that other gateways may use before they learn about this gateway's calls, divided by the number of gateways. These
	// units are charged when the store is available again.
	FailLocal Failure = "local"
	// FailOpen admits the call without counting it.
	FailOpen Failure = "open"
)

// Valid reports whether f is one of the failure policies.
func (f Failure) Valid() bool {
	return f == FailClosed || f == FailLocal || f == FailOpen
}

// Config configures a Limiter. It does not include quotas, which come with each call. Start from [DefaultConfig]. Fields without a YAML
// name are for tests and simulations.
type Config struct {
	Mode     Mode          `yaml:"mode" doc:"exact counts every call in Redis; leased takes blocks of permits from Redis"`
	Timeout  time.Duration `yaml:"timeout" doc:"time limit for one round trip to Redis, excluding the time to connect"`
	Gateways int           `yaml:"gateways" doc:"maximum number of gateways that share Redis. The failure policy local divides quotas by this number"`
	Failure  FailureConfig `yaml:"failure" doc:"policy while Redis is unavailable: closed, local or open" reload:"live"`
	Lease    LeaseConfig   `yaml:"lease" doc:"settings of mode leased"`

	// Gateway is the name of this gateway, unique among the gateways that share the store. If it is empty, New chooses a random name.
	Gateway string        `yaml:"-"`
	Commit  CommitConfig  `yaml:"-"`
	Breaker BreakerConfig `yaml:"-"`
	// Scopes is the maximum number of scopes that are remembered, over all organisations. Each takes about 400 bytes.
	Scopes int `yaml:"-"`
}

// FailureConfig holds the failure policy of each class of calls.
type FailureConfig struct {
	Read  Failure `yaml:"read" doc:"policy for calls that change nothing"`
	Write Failure `yaml:"write" doc:"policy for calls that change resources or cost money. Calls that lower cost are always allowed"`
}

// CommitConfig limits how concurrent calls are combined into batches. A batch is one round trip to the store.
type CommitConfig struct {
	// MaxInFlight is the maximum number of concurrent batches for each group of organisations. A larger number shortens the wait for a slow
	// batch; a smaller number makes batches larger.
	MaxInFlight int
	// MaxBatch is the maximum number of calls in a batch.
	MaxBatch int
}

// LeaseConfig configures leased permits. Only ModeLeased uses it.
type LeaseConfig struct {
	Horizon time.Duration `yaml:"horizon" doc:"time that a block of permits lasts at the recent call rate. Use 2s for round trips to Redis of more than 50 ms"`
}

// BreakerConfig configures when a store is considered down.
type BreakerConfig struct {
	// Failures is the number of consecutive requests to the store that must fail.
	Failures int
	// Cooldown is the time until the store is tried again. It doubles with each failed attempt, up to MaxCooldown. A random extension of up to
	// a quarter prevents simultaneous retries of all gateways.
	Cooldown, MaxCooldown time.Duration
}

// DefaultRecovery is the default maximum length of the pause in which gateways restore their counts after the store was replaced.
const DefaultRecovery = 5 * time.Second

// DefaultConfig returns the default configuration: ModeExact, FailLocal for reads and FailClosed for writes.
func DefaultConfig() Config {
	return Config{
		Mode:     ModeExact,
		Timeout:  time.Second,
		Gateways: 8,
		Failure:  FailureConfig{Read: FailLocal, Write: FailClosed},
		Commit:   CommitConfig{MaxInFlight: 4, MaxBatch: 256},
		Lease:    LeaseConfig{Horizon: 500 * time.Millisecond},
		Breaker:  BreakerConfig{Failures: 3, Cooldown: 250 * time.Millisecond, MaxCooldown: time.Second},
		Scopes:   100_000,
	}
}

// CheckGateway checks the name of a gateway. It must pass CheckID and must not contain a vertical bar.
func CheckGateway(name string) error {
	if strings.Contains(name, "|") {
		return fmt.Errorf("must not contain a vertical bar, got %q", name)
	}
	return CheckID(name)
}

// Validate checks the settings in c and joins the errors it finds, each with the path of the setting. It does not check the fields without
// a YAML name.
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
