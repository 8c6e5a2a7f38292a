package v1

import (
	"errors"
	"time"

	configfault "github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// Config holds the settings of the v1 dialect. Use DefaultConfig as a base, because the zero value is invalid.
type Config struct {
	Budget       time.Duration `yaml:"budget" doc:"maximum duration of a request; v1 clients give up after 30 s. 1s to 29s"`
	VolumeBudget time.Duration `yaml:"volume_budget" doc:"maximum duration of a request about network volumes, whose clients give up after 10 s. 1s to budget"`
	// Legacy holds the settings that both dialects share.
	Legacy legacy.Config `yaml:"-"`
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{Budget: 25 * time.Second, VolumeBudget: 9 * time.Second, Legacy: legacy.DefaultConfig()}
}

// Validate checks c and joins all errors, each with the name of its field.
func (c Config) Validate() error {
	var faults configfault.Found
	faults.If(c.Budget < time.Second || c.Budget > 29*time.Second, "budget", "must be between 1s and 29s, got %v", c.Budget)
	faults.If(c.VolumeBudget < time.Second || c.VolumeBudget > c.Budget, "volume_budget", "must be between 1s and budget (%v), got %v", c.Budget, c.VolumeBudget)
	return errors.Join(faults...)
}
