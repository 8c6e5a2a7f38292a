package catalog

import (
	"errors"
	"fmt"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// hoursPerMonth turns a monthly storage rate into an hourly one: a month of
// storage is 730 hours, a twelfth of a year.
const hoursPerMonth = 730

// Config is how price lists are kept.
type Config struct {
	Storage     Storage `yaml:"storage" doc:"the rates the platform's catalog does not list"`
	SandboxRate Money   `yaml:"sandbox_rate" doc:"the highest rate of any sandbox per hour, which a create reserves for the lifetime of the sandbox: the platform's catalog has no rate of sandboxes, and a response states it only once the sandbox runs; 0 refuses creates of sandboxes" unit:"USD"`

	// Refresh is how old a list may get before it is read again.
	Refresh time.Duration `yaml:"-"`
	// MaxAge is how old a list may be and still be believed. Beyond it every price is
	// unknown and calls that cost money are refused.
	MaxAge time.Duration `yaml:"-"`
	// Timeout bounds one read of a list.
	Timeout time.Duration `yaml:"-"`
	// Retry is the longest pause between two failing reads of one organisation's list.
	Retry time.Duration `yaml:"-"`
}

// Storage is the price of storage in USD per GB and month of 730 hours. An
// empty rate of network volumes is an unknown one: volumes of that kind are then
// refused where a price is needed. Disks always have a rate; "0" leaves them out
// of the price.
type Storage struct {
	Standard          string `yaml:"standard" doc:"the rate of the first 1000 GB of STANDARD network volumes"`
	StandardAbove     string `yaml:"standard_above" doc:"the rate of what such a volume has above 1000 GB; empty is the same rate"`
	HighPerformance   string `yaml:"high_performance" doc:"the rate of HIGH_PERFORMANCE network volumes, which differs by data centre: set the highest in use; the default is the platform's list price when this was built"`
	Container         string `yaml:"container" doc:"the rate of the container disks of pods, workers and cluster members, which cost while they run"`
	Persistent        string `yaml:"persistent" doc:"the rate of storage on the host of a running pod"`
	PersistentStopped string `yaml:"persistent_stopped" doc:"the rate of the same while the pod is stopped"`
	DefaultDisk       int64  `yaml:"default_disk" doc:"size of a container disk whose size neither a request nor its template says; the platform does not name the size it gives then" unit:"GB"`
}

// DefaultConfig is the configuration used where nothing is said.
func DefaultConfig() Config {
	return Config{
		Refresh: 5 * time.Minute,
		MaxAge:  time.Hour,
		Timeout: 10 * time.Second,
		Retry:   5 * time.Second,
		Storage: Storage{Standard: "0.07", StandardAbove: "0.05", HighPerformance: "0.14", Container: "0.10", Persistent: "0.10", PersistentStopped: "0.20", DefaultDisk: 20},
	}
}

// Validate reports every fault, each with its path below the section.
func (c Config) Validate() error {
	_, err := c.Storage.rates()
	return err
}

// Rates are the parsed storage rates, per GB and month.
type Rates struct {
	// Standard and HighPerformance are of network volumes; 0 is unknown. StandardAbove is of
	// the size of a standard one above firstTier; 0 is Standard.
	Standard, StandardAbove, HighPerformance Money
	// Container, Persistent and PersistentStopped are of disks; 0 costs nothing.
	Container, Persistent, PersistentStopped Money
	// Sandbox is the highest rate of a sandbox per hour; 0 is unknown.
	Sandbox Money
	// DefaultDisk is the size in GB of a container disk that is left out.
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
		switch {
		case err != nil && part.disk:
			errs = append(errs, fault.Errorf("storage."+part.name, "%q is not an amount of USD (0 leaves these disks out of prices)", part.value))
		case err != nil || m == 0 && !part.disk:
			errs = append(errs, fault.Errorf("storage."+part.name, "%q is not a positive amount of USD", part.value))
		}
		*part.to = m
	}
	errs.If(s.DefaultDisk < 0, "storage.default_disk", "must not be negative, got %d", s.DefaultDisk)
	return r, errors.Join(errs...)
}

// firstTier is how many GB of a standard network volume cost the rate of the first
// terabyte.
const firstTier = 1000

// volume is the cost per month of a network volume of a kind, and its rates. One that is
// left to a data centre of which nothing is known could be either kind, so the dearer
// counts.
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
