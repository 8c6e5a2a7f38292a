package settings

import (
	"errors"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Connections limits the connections of the data listener. The zero value sets no limits.
type Connections struct {
	Total      int `yaml:"total" doc:"maximum open connections of the data listener, for all callers together; 0 means no limit" zero:"no bound"`
	PerAddress int `yaml:"per_address" doc:"maximum open connections from one address, or one /64 network for IPv6; addresses in limits.anonymous_exempt are exempt. 0 means no limit" zero:"no bound"`
}

// Validate returns all faults.
func (c *Connections) Validate() error {
	var errs fault.Found
	errs.If(c.Total < 0, "total", "must not be negative, got %d", c.Total)
	errs.If(c.PerAddress < 0, "per_address", "must not be negative, got %d", c.PerAddress)
	return errors.Join(errs...)
}
