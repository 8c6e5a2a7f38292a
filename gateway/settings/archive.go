package settings

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Archive bounds the decisions that are kept in Redis.
type Archive struct {
	For time.Duration `yaml:"for" doc:"how long Redis keeps calls that were refused, warned of, excepted or changed something, for any gateway to explain; 0 keeps nothing there"`
	Max int           `yaml:"max" doc:"how many of them an organisation has at most, each about 2.5 KB" unit:"exchanges"`
}

// DefaultArchive returns a day and 10,000 exchanges.
func DefaultArchive() Archive { return Archive{For: 24 * time.Hour, Max: 10_000} }

// Bounds of a Archive.
const (
	maxFor = 90 * 24 * time.Hour
	maxMax = 1_000_000
)

// Validate reports every fault.
func (c Archive) Validate() error {
	var errs fault.Found
	errs.If(c.For < 0 || c.For > maxFor, "for", "must be between 0 and %s", maxFor)
	errs.If(c.Max < 1 || c.Max > maxMax, "max", "must be between 1 and %d", maxMax)
	return errors.Join(errs...)
}
