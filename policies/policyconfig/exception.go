package policyconfig

import "time"

// Exception allows some callers to make calls that a policy refuses, until a given time and for a stated reason. It is configured
// separately from the policy: decisions name it, and it expires on its own.
type Exception struct {
	ID            string           `yaml:"id" doc:"name of the exception in decisions and logs, unique in the organisation"`
	Policy        string           `yaml:"policy" doc:"name of the suppressed policy"`
	Teams         []string         `yaml:"teams" doc:"teams whose callers are exempt. At least one of teams, keys and roles is required"`
	Keys          []string         `yaml:"keys" doc:"IDs of the exempt keys"`
	Roles         []string         `yaml:"roles" doc:"roles whose holders are exempt"`
	Operations    []string         `yaml:"operations" doc:"operations that the exception applies to; empty means all operations"`
	Where         map[string][]any `yaml:"where" doc:"conditions that the call must meet, as a map from JSON Pointers to allowed values. All conditions must be met. Pointers refer to the resulting state of the resource, or to the body if the call does not result in a state"`
	MaxUSDPerHour string           `yaml:"max_usd_per_hour" doc:"maximum hourly cost of the call in USD, e.g. '5'"`
	From          time.Time        `yaml:"from" doc:"start time in RFC 3339 format; empty means immediately"`
	Until         time.Time        `yaml:"until" doc:"end time in RFC 3339 format"`
	Reason        string           `yaml:"reason" doc:"reason for the exception"`
	GrantedBy     string           `yaml:"granted_by" doc:"person who granted the exception"`
}
