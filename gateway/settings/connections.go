package settings

import (
	"errors"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Connections bounds the connections of the data listener. The zero value has no bounds.
type Connections struct {
	Total      int `yaml:"total" doc:"connections of the data listener, of all callers together; 0 is no bound" zero:"no bound"`
	PerAddress int `yaml:"per_address" doc:"those from one address, IPv6 by /64 network; addresses in limits.anonymous_exempt have no such bound; 0 is no bound" zero:"no bound"`
}

// Validate reports every fault.
func (c *Connections) Validate() error {
	var errs fault.Found
	errs.If(c.Total < 0, "total", "must not be negative, got %d", c.Total)
	errs.If(c.PerAddress < 0, "per_address", "must not be negative, got %d", c.PerAddress)
	return errors.Join(errs...)
}
