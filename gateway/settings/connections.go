package settings

import (
	"errors"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Connections limits the connections of the data listener. The zero value sets no limits.
type Connections struct {
	Total int `yaml:"total" doc:"maximum open connections to the data listener; 0 means no limit" zero:"no bound"`

	PerAddress int `yaml:"per_address" doc:"maximum open connections from one IPv4 address or IPv6 /64 network; 0 means no limit. limits.anonymous_exempt exempts addresses" zero:"no bound"`
}

// Validate returns all faults.
func (c *Connections) Validate() error {
	var errs fault.Found
	errs.If(c.Total < 0, "total", "must not be negative, got %d", c.Total)
	errs.If(c.PerAddress < 0, "per_address", "must not be negative, got %d", c.PerAddress)
	return errors.Join(errs...)
}
