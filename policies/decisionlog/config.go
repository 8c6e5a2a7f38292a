package decisionlog

import (
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// Warnings reports masks of members that no event has, each with its path below the section.
func Warnings(c *Config) []error {
	var out fault.Found
	for i, m := range c.Mask {
		path, err := policyconfig.ParseMask(m)
		out.If(err == nil && !masksSomething(path), fault.Index("mask", i), "no event has %s", m)
	}
	return out
}

// Config is the section of the decision log.
type Config = policyconfig.DecisionLog

// Service is a service that it posts to.
type Service = policyconfig.Service
