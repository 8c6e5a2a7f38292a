package catalog

import (
	"errors"
	"fmt"
	"time"
)

// hoursPerMonth turns a monthly storage rate into an hourly one: the shortest
// month, because the hour must not be priced too low.
const hoursPerMonth = 28 * 24

// Config is how price lists are kept.
type Config struct {
	// Refresh is how old a list may get before Run reads it again. Default 5m.
	Refresh time.Duration `yaml:"refresh"`
	// MaxAge is how old a list may be and still be believed; beyond it every
	// price is unknown and what costs is refused. Default 1h.
	MaxAge time.Duration `yaml:"max_age"`
	// Timeout bounds one read of a list. Default 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Retry is the least time between two failing reads of one organisation's
	// list. Default 5s.
	Retry time.Duration `yaml:"retry"`
	// Storage holds the rates the platform's catalog does not list.
	Storage Storage `yaml:"storage"`
}

// Storage is the price of storage in USD per GB and month. An empty rate is an
// unknown one: volumes of that kind are then refused where a price is needed.
type Storage struct {
	// Standard is the rate of STANDARD network volumes. Default 0.07.
	Standard string `yaml:"standard"`
	// HighPerformance is the rate of HIGH_PERFORMANCE network volumes, which
	// differs by data centre: set the highest in use. Default: unknown.
	HighPerformance string `yaml:"high_performance"`
}

// DefaultConfig is the configuration used where nothing is said.
func DefaultConfig() Config {
	return Config{
		Refresh: 5 * time.Minute,
		MaxAge:  time.Hour,
		Timeout: 10 * time.Second,
		Retry:   5 * time.Second,
		Storage: Storage{Standard: "0.07"},
	}
}

// Validate reports every fault, each with its path below the section.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"refresh", c.Refresh}, {"max_age", c.MaxAge}, {"timeout", c.Timeout}, {"retry", c.Retry}} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: must be positive, got %s", d.name, d.value))
		}
	}
	if c.MaxAge > 0 && c.MaxAge < c.Refresh {
		errs = append(errs, fmt.Errorf("max_age: %s is shorter than refresh (%s)", c.MaxAge, c.Refresh))
	}
	_, err := c.Storage.rates()
	return errors.Join(append(errs, err)...)
}

// Rates are the parsed storage rates.
type Rates struct {
	// Standard and HighPerformance are per GB and month; 0 is unknown.
	Standard, HighPerformance Money
}

func (s Storage) rates() (Rates, error) {
	standard, err1 := rate("storage.standard", s.Standard)
	fast, err2 := rate("storage.high_performance", s.HighPerformance)
	return Rates{Standard: standard, HighPerformance: fast}, errors.Join(err1, err2)
}

func rate(name, value string) (Money, error) {
	if value == "" {
		return 0, nil
	}
	m, err := ParseMoney(value)
	if err != nil || m == 0 {
		return 0, fmt.Errorf("%s: %q is not a positive amount of USD", name, value)
	}
	return m, nil
}

// volume is the monthly rate of a kind of network volume; a kind that is left
// to the data centre could be either, so the dearer counts.
func (r Rates) volume(kind string) (m Money, ok bool) {
	switch kind {
	case "STANDARD":
		m = r.Standard
	case "HIGH_PERFORMANCE":
		m = r.HighPerformance
	case "":
		if r.Standard > 0 && r.HighPerformance > 0 {
			m = max(r.Standard, r.HighPerformance)
		}
	}
	return m, m > 0
}
