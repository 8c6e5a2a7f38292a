package policyconfig

import "time"

// Exception allows some callers to make calls that a policy refuses, until a given time and for a stated reason. It is configured
// separately from the policy: decisions name it, and it expires on its own.
type Exception struct {
	ID            string           `yaml:"id" doc:"name in decisions and logs, unique in the organisation"`
	Policy        string           `yaml:"policy" doc:"name of the suppressed policy"`
	Teams         []string         `yaml:"teams" doc:"teams whose callers are exempt; at least one of teams, keys and roles is required"`
	Keys          []string         `yaml:"keys" doc:"ids of the exempt keys"`
	Roles         []string         `yaml:"roles" doc:"roles whose holders are exempt"`
	Operations    []string         `yaml:"operations" doc:"operations that the exception applies to; empty means all"`
	Where         map[string][]any `yaml:"where" doc:"conditions on the call: JSON Pointers into the resulting state (or into the body, if there is no such state) and the allowed values. All must be met"`
	MaxUSDPerHour string           `yaml:"max_usd_per_hour" doc:"highest cost of the call per hour in USD, e.g. '5'"`
	From          time.Time        `yaml:"from" doc:"start time, RFC 3339; empty means immediately"`
	Until         time.Time        `yaml:"until" doc:"end time, RFC 3339"`
	Reason        string           `yaml:"reason" doc:"reason for the exception"`
	GrantedBy     string           `yaml:"granted_by" doc:"person who granted the exception"`
}
