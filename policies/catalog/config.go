package catalog

import (
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// hoursPerMonth converts monthly storage rates into hourly ones: a month is 730 hours, a twelfth of a year.
const hoursPerMonth = 730

// Config configures how price lists are cached, and which rates are used for hardware that price lists omit.
type Config struct {
	Storage     Storage `yaml:"storage" doc:"storage rates in USD per GB and month, which the platform's catalog does not list"`
	SandboxRate Money   `yaml:"sandbox_rate" doc:"highest hourly rate of any sandbox. Until the platform states the actual rate, the gateway reserves this rate for the sandbox's lifetime. 0 refuses new sandboxes" unit:"USD"`

	// Refresh is the age at which a list is read again.
	Refresh time.Duration `yaml:"-"`
	// MaxAge is the age at which a list is no longer used. From then on every price is unknown and calls that cost money are
	// refused.
	MaxAge time.Duration `yaml:"-"`
	// Timeout limits one read of a list.
	Timeout time.Duration `yaml:"-"`
	// Retry is the longest pause between failing reads of one organisation's list.
	Retry time.Duration `yaml:"-"`
}

// Storage holds the storage prices in USD per GB per month (730 hours). An empty rate of network volumes means that the rate is unknown;
// calls that need an unknown rate are refused. Disks always have a rate; "0" excludes them from prices.
type Storage struct {
	Standard          string `yaml:"standard" doc:"rate for the first 1000 GB of a STANDARD network volume"`
	StandardAbove     string `yaml:"standard_above" doc:"rate above 1000 GB; default standard"`
	HighPerformance   string `yaml:"high_performance" doc:"rate for HIGH_PERFORMANCE network volumes, which differs by data centre. Set the highest rate of your data centres"`
	Container         string `yaml:"container" doc:"rate for container disks of running pods, workers and cluster members"`
	Persistent        string `yaml:"persistent" doc:"rate for persistent storage on the host of a running pod"`
	PersistentStopped string `yaml:"persistent_stopped" doc:"rate for persistent storage on the host of a stopped pod"`
	DefaultDisk       int64  `yaml:"default_disk" doc:"container disk size to assume if neither the request nor its template sets a size" unit:"GB"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		Refresh: 5 * time.Minute,
		MaxAge:  time.Hour,
		Timeout: 10 * time.Second,
		Retry:   5 * time.Second,
		Storage: Storage{
			Standard: "0.07", StandardAbove: "0.05", HighPerformance: "0.14", Container: "0.10", Persistent: "0.10",
			PersistentStopped: "0.20", DefaultDisk: 20,
		},
	}
}

// Validate checks c and joins the errors it finds, each with its path.
func (c Config) Validate() error {
	_, err := c.Storage.rates()
	return err
}

// Rates holds the parsed storage rates, per GB and month.
type Rates struct {
	// Standard and HighPerformance are the rates of network volumes; 0 means unknown. StandardAbove is the rate of the part of a
	// standard volume above firstTier; 0 means the same as Standard.
	Standard, StandardAbove, HighPerformance Money
	// Container, Persistent and PersistentStopped are the rates of disks; 0 means free.
	Container, Persistent, PersistentStopped Money
	// Sandbox is the highest hourly rate of a sandbox; 0 means unknown.
	Sandbox Money
	// DefaultDisk is the size in GB of a container disk if neither the request nor its template sets one.
	DefaultDisk int64
}

func (s Storage) rates() (Rates, error) {
	r := Rates{DefaultDisk: s.DefaultDisk}
	var errs fault.Found
	for _, part := range []struct {
		name, value string
		disk        bool
		to          *Money
	}{
		{"standard", s.Standard, false, &r.Standard},
		{"standard_above", s.StandardAbove, false, &r.StandardAbove},
		{"high_performance", s.HighPerformance, false, &r.HighPerformance},
		{"container", s.Container, true, &r.Container},
		{"persistent", s.Persistent, true, &r.Persistent},
		{"persistent_stopped", s.PersistentStopped, true, &r.PersistentStopped},
	} {
		if part.value == "" && !part.disk {
			continue
		}
		m, err := ParseMoney(part.value)
		errs.If(part.disk && err != nil, "storage."+part.name, "must be an amount in USD, got %q (0 makes these disks free)", part.value)
		errs.If(!part.disk && (err != nil || m == 0), "storage."+part.name, "must be a positive amount in USD, got %q", part.value)
		*part.to = m
	}
	errs.If(s.DefaultDisk < 0, "storage.default_disk", "must not be negative, got %d", s.DefaultDisk)
	return r, errors.Join(errs...)
}

// firstTier is the size in GB up to which the first rate of a standard network volume applies.
const firstTier = 1000

// volume returns the monthly cost of a network volume and describes how it was computed. If neither the request nor the data centre
// determines the type, the more expensive type is assumed.
func (r Rates) volume(kind string, size int64) (monthly Money, basis string, known bool) {
	switch kind {
	case "STANDARD":
		return r.standard(size)
	case "HIGH_PERFORMANCE":
		return tier(r.HighPerformance, size)
	case "":
		one, of, ok := r.standard(size)
		other, ofOther, okOther := tier(r.HighPerformance, size)
		if other > one {
			one, of = other, ofOther
		}
		return one, of, ok && okOther
	}
	return 0, "", false
}

func (r Rates) standard(size int64) (monthly Money, basis string, known bool) {
	if r.StandardAbove == 0 || size <= firstTier {
		return tier(r.Standard, size)
	}
	first, of, ok := tier(r.Standard, firstTier)
	above, ofAbove, okAbove := tier(r.StandardAbove, size-firstTier)
	return first + above, of + ", " + ofAbove, ok && okAbove
}

func tier(rate Money, size int64) (monthly Money, basis string, known bool) {
	monthly, ok := rate.times(size)
	return monthly, fmt.Sprintf("%d GB at %s per GB and month", size, rate), ok && rate > 0
}
