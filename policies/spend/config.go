package spend

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config is how ledgers are kept.
type Config struct {
	Reconcile  time.Duration `yaml:"reconcile" doc:"time between two comparisons of the ledger with the platform's lists"`
	Unresolved time.Duration `yaml:"unresolved" doc:"how long what a call without an answer may have made is looked for before its reservation is released"`
}

// DefaultConfig is the configuration used where nothing is said.
func DefaultConfig() Config { return Config{Reconcile: time.Minute, Unresolved: 10 * time.Minute} }

// Validate reports every fault, each with its path below the section.
func (c Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		name         string
		value, least time.Duration
	}{{"reconcile", c.Reconcile, time.Second}, {"unresolved", c.Unresolved, time.Minute}} {
		if d.value < d.least {
			errs = append(errs, fault.Errorf(d.name, "must be at least %s, got %s", d.least, d.value))
		}
	}
	return errors.Join(errs...)
}
