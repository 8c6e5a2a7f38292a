package decisionlog

import (
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// Warnings reports masks that match no member of any event, each with its path.
func Warnings(c *Config) []error {
	var out fault.Found
	for i, m := range c.Mask {
		path, err := policyconfig.ParseMask(m)
		out.If(err == nil && !masksSomething(path), fault.Index("mask", i), "member %s does not exist in any event", m)
	}
	return out
}

// Config is the configuration of the decision log.
type Config = policyconfig.DecisionLog
