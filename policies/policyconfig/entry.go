package policyconfig

import (
	"cmp"
	"slices"
)

// Entry enables one policy.
type Entry struct {
	Policy      string         `yaml:"policy" doc:"name of a built-in policy, or <name> of your own package policies.<name>"`
	Mode        Mode           `yaml:"mode,omitempty" doc:"effect of a violation: enforce, warn or shadow; default enforce"`
	Teams       []string       `yaml:"teams,omitempty,flow" doc:"apply the policy only to these teams; default all teams"`
	ExceptTeams []string       `yaml:"except_teams,omitempty,flow" doc:"teams that are exempt"`
	Roles       []string       `yaml:"roles,omitempty,flow" doc:"apply the policy only to callers with one of these roles; default all callers"`
	ExceptRoles []string       `yaml:"except_roles,omitempty,flow" doc:"roles whose holders are exempt"`
	Ratchet     bool           `yaml:"ratchet,omitempty" doc:"allow an update, with a warning, if the resource already violates the policy at least as much"`
	Approvable  bool           `yaml:"approvable,omitempty" doc:"allow operators to approve calls that the policy refuses; see docs/approvals.md"`
	Params      map[string]any `yaml:"params,omitempty" doc:"parameters; see docs/policies.md"`

	// Implied is set for an entry that is in force by default and not in the configuration.
	Implied bool `yaml:"-"`
}

// Mode is the effect of a violation.
type Mode string

// Modes.
const (
	// ModeEnforce refuses the call.
	ModeEnforce Mode = "enforce"
	// ModeWarn allows the call and returns a warning to the caller.
	ModeWarn Mode = "warn"
	// ModeShadow allows the call and only logs the violation.
	ModeShadow Mode = "shadow"
)

// OrDefault returns m, or ModeEnforce if m is empty.
func (m Mode) OrDefault() Mode { return cmp.Or(m, ModeEnforce) }

// AppliesTo reports whether the entry applies to a caller with the given team and roles.
func (e *Entry) AppliesTo(team string, roles []string) bool {
	holds := func(list []string) bool {
		return slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(list, role) })
	}
	return (len(e.Teams) == 0 || slices.Contains(e.Teams, team)) && !slices.Contains(e.ExceptTeams, team) &&
		(len(e.Roles) == 0 || holds(e.Roles)) && !holds(e.ExceptRoles)
}
