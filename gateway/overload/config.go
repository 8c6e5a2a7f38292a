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

// Config are the bounds. Start from DefaultConfig.
type Config struct {
	Working int `yaml:"working" doc:"requests that the gateway works on at once; those that wait for the platform or for their body are not among them; 0 is 64 for each processor that it uses" unit:"requests" zero:"64 for each processor"`

	Open int `yaml:"open" doc:"requests under way, those that wait included, without runs and streams; 0 is one for each MiB of half the memory that it may use, and 10000 without a limit" unit:"requests" zero:"by the memory"`

	// Waiting is how many requests wait for one of these places; 0 has none wait.
	Waiting int `yaml:"-"`
	// Acquire is how long one waits at most before it is refused with 503.
	Wait time.Duration `yaml:"-"`
}

// DefaultConfig returns the bounds that are right unless measured otherwise.
func DefaultConfig() Config { return Config{Waiting: 1000, Wait: 500 * time.Millisecond} }

// Validate reports every fault.
func (c *Config) Validate() error {
	var errs fault.Found
	errs.If(c.Working < 0, "working", "must not be negative, got %d", c.Working)
	errs.If(c.Open < 0, "open", "must not be negative, got %d", c.Open)
	return errors.Join(errs...)
}

const (
	// perProcessor is how many requests are worked on for each processor. Most of
	// them wait for Redis: a request takes some 0.1 ms of a processor and a few
	// milliseconds of waiting. With this many the processors are never idle, and a
	// request that was admitted is done after a few dozen milliseconds.
	perProcessor = 64
	// perOpen is the memory of a request under way, in bytes: a body of 100 KB, its
	// parsed form, and the objects made of it, with garbage.
	perOpen = 1 << 20
	// leastOpen and unlimitedOpen are how many requests are under way at least, and
	// without a memory limit.
	leastOpen, unlimitedOpen = 64, 10000
)

// withDefaults fills in the figures that follow from the processors, and from limit, the memory
// that the process may use in bytes.
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

// forProcess fills in the figures that follow from this process.
func (c Config) forProcess() Config {
	return c.withDefaults(runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1))
}
