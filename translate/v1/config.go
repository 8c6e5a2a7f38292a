package v1

import (
	"errors"
	"time"

	configfault "github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// Config are the settings of the v1 dialect. Start from DefaultConfig: the zero
// value is not valid.
type Config struct {
	Budget       time.Duration `yaml:"budget" doc:"the time one request may take; old clients give up after 30 s. 1s to 29s"`
	VolumeBudget time.Duration `yaml:"volume_budget" doc:"the same for network volumes, whose clients give up after 10 s. 1s to budget"`
	// Legacy are the settings that both dialects share.
	Legacy legacy.Config `yaml:"-"`
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{Budget: 25 * time.Second, VolumeBudget: 9 * time.Second, Legacy: legacy.DefaultConfig()}
}

// Validate returns all faults joined, each beginning with the field's name.
func (c Config) Validate() error {
	var faults configfault.Found
	faults.If(c.Budget < time.Second || c.Budget > 29*time.Second, "budget", "%v is not between 1s and 29s", c.Budget)
	faults.If(c.VolumeBudget < time.Second || c.VolumeBudget > c.Budget, "volume_budget", "%v is not between 1s and budget (%v)", c.VolumeBudget, c.Budget)
	return errors.Join(faults...)
}
