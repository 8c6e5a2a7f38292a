package settings

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Archive limits the age and the number of the decisions stored in Redis.
type Archive struct {
	For time.Duration `yaml:"for" doc:"retention of calls that were refused, had a warning, used an exception or changed something; 0 stores none"`
	Max int           `yaml:"max" doc:"maximum stored calls per organisation, each about 2.5 KB" unit:"exchanges"`
}

// DefaultArchive returns the default limits: one day and 10,000 decisions.
func DefaultArchive() Archive { return Archive{For: 24 * time.Hour, Max: 10_000} }

// Upper limits of an Archive.
const (
	maxFor = 90 * 24 * time.Hour
	maxMax = 1_000_000
)

// Validate returns all faults.
func (c Archive) Validate() error {
	var errs fault.Found
	errs.If(c.For < 0 || c.For > maxFor, "for", "must be between 0 and %s", maxFor)
	errs.If(c.Max < 1 || c.Max > maxMax, "max", "must be between 1 and %d", maxMax)
	return errors.Join(errs...)
}
