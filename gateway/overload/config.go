package overload

import (
	"cmp"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config holds the limits of a Gate. Start from DefaultConfig.
type Config struct {
	Working int `yaml:"working" doc:"maximum requests being processed, except requests that wait for the platform or their body; default 64 per processor" unit:"requests" zero:"64 for each processor"`

	Open int `yaml:"open" doc:"maximum open requests, including waiting requests, but without runs and streams; default one per 2 MiB of the memory limit, or 10000 without a limit" unit:"requests" zero:"by the memory"`

	// Waiting is the maximum number of queued requests. 0 disables queueing.
	Waiting int `yaml:"-"`
	// Wait is the maximum time of a request in the queue. After this time, the request is refused with 503.
	Wait time.Duration `yaml:"-"`
}

// DefaultConfig returns the default limits.
func DefaultConfig() Config { return Config{Waiting: 1000, Wait: 500 * time.Millisecond} }

// Validate checks c and joins the errors it finds, each with the name of the field.
func (c *Config) Validate() error {
	var errs fault.Found
	errs.If(c.Working < 0, "working", "must not be negative, got %d", c.Working)
	errs.If(c.Open < 0, "open", "must not be negative, got %d", c.Open)
	return errors.Join(errs...)
}

const (
	// perProcessor is the default number of working requests per processor. Most of these requests wait for Redis: a request uses about 0.1 ms
	// of processor time and waits a few milliseconds. With this number, the processors are fully used, and an admitted request takes a few
	// dozen milliseconds at most.
	perProcessor = 64
	// perOpen is the estimated memory of an open request in bytes: a body of 100 KB, its parsed form, and the objects built from it,
	// including garbage.
	perOpen = 1 << 20
	// leastOpen and unlimitedOpen are the minimum and maximum of the default number of open requests. unlimitedOpen is also the default
	// without a memory limit.
	leastOpen, unlimitedOpen = 64, 10000
)

// withDefaults replaces zero values with defaults, which depend on the number of processors and the memory limit in bytes.
func (c Config) withDefaults(processors int, limit int64) Config {
	c.Working = cmp.Or(c.Working, perProcessor*processors)
	switch {
	case c.Open != 0:
	case limit == math.MaxInt64:
		c.Open = unlimitedOpen
	default:
		c.Open = int(min(max(limit/2/perOpen, leastOpen), unlimitedOpen))
	}
	return c
}

// forProcess replaces zero values with the defaults for this process.
func (c Config) forProcess() Config {
	return c.withDefaults(runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1))
}
