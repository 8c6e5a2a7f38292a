package policyconfig

import "slices"

// Entry switches one policy on.
type Entry struct {
	Policy      string         `yaml:"policy" doc:"a policy of the library, or a package policies.<name> of the organisation's own Rego"`
	Mode        Mode           `yaml:"mode" doc:"effect of a violation: enforce, warn or shadow; empty is enforce"`
	Teams       []string       `yaml:"teams" doc:"the entry is for callers of these teams only; empty is all"`
	ExceptTeams []string       `yaml:"except_teams" doc:"exempts the callers of these teams"`
	Roles       []string       `yaml:"roles" doc:"the entry is for callers with at least one of these roles only; empty is all"`
	ExceptRoles []string       `yaml:"except_roles" doc:"exempts callers with one of these roles"`
	Ratchet     bool           `yaml:"ratchet" doc:"lets an update pass that violates the policy no more than the resource as it is does, with a warning"`
	Approvable  bool           `yaml:"approvable" doc:"lets operators approve single calls that the policy refuses; see docs/approvals.md"`
	Params      map[string]any `yaml:"params" doc:"the policy's parameters; see docs/policies.md"`
}

// Mode sets the effect of a violation that a policy finds.
type Mode string

// The modes.
const (
	// ModeEnforce refuses the call.
	ModeEnforce Mode = "enforce"
	// ModeWarn lets it pass and warns the caller.
	ModeWarn Mode = "warn"
	// ModeShadow lets it pass silently and records it.
	ModeShadow Mode = "shadow"
)

// OrDefault returns the mode, or the default where none is given.
func (m Mode) OrDefault() Mode {
	if m == "" {
		return ModeEnforce
	}
	return m
}

// AppliesTo reports whether the entry judges callers of a team with these roles.
func (e *Entry) AppliesTo(team string, roles []string) bool {
	holds := func(list []string) bool {
		return slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(list, role) })
	}
	return (len(e.Teams) == 0 || slices.Contains(e.Teams, team)) && !slices.Contains(e.ExceptTeams, team) &&
		(len(e.Roles) == 0 || holds(e.Roles)) && !holds(e.ExceptRoles)
}
