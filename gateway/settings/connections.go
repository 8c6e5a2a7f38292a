package settings

import (
	"errors"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Connections limits the connections of the data listener. The zero value sets no limits.
type Connections struct {
	Total int `yaml:"total" doc:"maximum number of open connections to the data listener from all callers; 0 means no limit" zero:"no bound"`

	PerAddress int `yaml:"per_address" doc:"maximum number of open connections from one address, or from one /64 network for IPv6; 0 means no limit. Addresses in limits.anonymous_exempt are exempt" zero:"no bound"`
}

// Validate returns all faults.
func (c *Connections) Validate() error {
	var errs fault.Found
	errs.If(c.Total < 0, "total", "must not be negative, got %d", c.Total)
	errs.If(c.PerAddress < 0, "per_address", "must not be negative, got %d", c.PerAddress)
	return errors.Join(errs...)
}
