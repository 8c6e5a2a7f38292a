package load

import "slices"

// Concerns reports whether the entry judges callers of a team with these roles.
func (e *Entry) Concerns(team string, roles []string) bool {
	holds := func(list []string) bool {
		return slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(list, role) })
	}
	return (len(e.Teams) == 0 || slices.Contains(e.Teams, team)) && !slices.Contains(e.ExceptTeams, team) &&
		(len(e.Roles) == 0 || holds(e.Roles)) && !holds(e.ExceptRoles)
}
