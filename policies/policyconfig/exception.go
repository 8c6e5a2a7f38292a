package policyconfig

import "time"

// Exception allows some callers to make calls that a policy refuses, until a given time and for a stated reason. It is configured
// separately from the policy: decisions name it, and it expires on its own.
type Exception struct {
	ID            string           `yaml:"id" doc:"name in decisions and logs, unique in the organisation"`
	Policy        string           `yaml:"policy" doc:"name of the suppressed policy"`
	Teams         []string         `yaml:"teams" doc:"teams that are exempt. At least one of teams, keys and roles is required"`
	Keys          []string         `yaml:"keys" doc:"IDs of the exempt keys"`
	Roles         []string         `yaml:"roles" doc:"roles whose holders are exempt"`
	Operations    []string         `yaml:"operations" doc:"operations that the exception applies to; default all operations"`
	Where         map[string][]any `yaml:"where" doc:"allowed values by JSON Pointer into the resource after the call, or into the body if no resource results; the call must meet all conditions"`
	MaxUSDPerHour string           `yaml:"max_usd_per_hour" doc:"maximum hourly cost of the call in USD, such as '5'"`
	From          time.Time        `yaml:"from" doc:"start time (RFC 3339); default immediately"`
	Until         time.Time        `yaml:"until" doc:"end time (RFC 3339)"`
	Reason        string           `yaml:"reason" doc:"reason for the exception"`
	GrantedBy     string           `yaml:"granted_by" doc:"person who granted the exception"`
}
