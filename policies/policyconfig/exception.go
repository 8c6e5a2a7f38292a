package policyconfig

import "time"

// Exception allows some callers the calls that a policy refuses, for a time and for a
// reason. It is an object of its own, never a hole in a policy: a decision names it, and
// it ends by itself.
type Exception struct {
	ID            string           `yaml:"id" doc:"its name in decisions and logs, unique in the organisation"`
	Policy        string           `yaml:"policy" doc:"the policy it overrides"`
	Teams         []string         `yaml:"teams" doc:"callers of these teams it is for; teams, keys or roles must name someone"`
	Keys          []string         `yaml:"keys" doc:"ids of the keys it is for"`
	Roles         []string         `yaml:"roles" doc:"callers with one of these roles it is for"`
	Operations    []string         `yaml:"operations" doc:"operations it is for; empty is all"`
	Where         map[string][]any `yaml:"where" doc:"narrows the shape of the call: a pointer into the state after the call (or into the body, where there is none) and the values it may have there. All must hold"`
	MaxUSDPerHour string           `yaml:"max_usd_per_hour" doc:"the most the call may cost per hour, e.g. '5'"`
	From          time.Time        `yaml:"from" doc:"when it begins, RFC 3339; empty is at once"`
	Until         time.Time        `yaml:"until" doc:"when it has ended, RFC 3339"`
	Reason        string           `yaml:"reason" doc:"why it was granted"`
	GrantedBy     string           `yaml:"granted_by" doc:"who granted it"`
}
