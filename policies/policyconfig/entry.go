package policyconfig

import "slices"

// Entry enables one policy.
type Entry struct {
	Policy      string         `yaml:"policy" doc:"name of a library policy, or the <name> of an own package policies.<name>"`
	Mode        Mode           `yaml:"mode" doc:"effect of a violation: enforce, warn or shadow; empty means enforce"`
	Teams       []string       `yaml:"teams" doc:"apply the policy only to callers in these teams; empty means all teams"`
	ExceptTeams []string       `yaml:"except_teams" doc:"exempt callers in these teams"`
	Roles       []string       `yaml:"roles" doc:"apply the policy only to callers with at least one of these roles; empty means all callers"`
	ExceptRoles []string       `yaml:"except_roles" doc:"exempt callers with at least one of these roles"`
	Ratchet     bool           `yaml:"ratchet" doc:"allow an update, with a warning, if the resource already violates the policy to at least the same extent"`
	Approvable  bool           `yaml:"approvable" doc:"allow operators to approve individual calls that the policy refuses; see docs/approvals.md"`
	Params      map[string]any `yaml:"params" doc:"parameters of the policy; see docs/policies.md"`
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
func (m Mode) OrDefault() Mode {
	if m == "" {
		return ModeEnforce
	}
	return m
}

// AppliesTo reports whether the entry applies to a caller with the given team and roles.
func (e *Entry) AppliesTo(team string, roles []string) bool {
	holds := func(list []string) bool {
		return slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(list, role) })
	}
	return (len(e.Teams) == 0 || slices.Contains(e.Teams, team)) && !slices.Contains(e.ExceptTeams, team) &&
		(len(e.Roles) == 0 || holds(e.Roles)) && !holds(e.ExceptRoles)
}
