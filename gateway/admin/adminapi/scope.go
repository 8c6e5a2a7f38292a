package adminapi

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Role is a set of rights of an operator.
type Role string

// The roles. Every operator is a viewer.
const (
	// Viewer reads.
	Viewer Role = "viewer"
	// Operator runs the gateway: counts, owners, idle resources, profiles.
	Operator Role = "operator"
	// Approver answers requests for approval.
	Approver Role = "approver"
	// Admin has every role, and alone manages callers' keys.
	Admin Role = "admin"

	// Anyone is the role of rows that require no token.
	Anyone Role = ""
)

// Values lists the roles.
func (Role) Values() []string {
	return []string{string(Viewer), string(Operator), string(Approver), string(Admin)}
}

// Principal is the asker, with the organisations within reach. It is immutable.
type Principal struct {
	// Name is the asker's, as the audit log has it.
	Name string
	// Anonymous askers have the shared token, or none: they give a name for each record.
	Anonymous bool
	Roles     []Role
	// Org is the organisation that the asker is bound to, "" for none.
	Org string
	// Orgs are the organisations that can be asked about.
	Orgs []Tenant
	// Now is when the question is asked.
	Now time.Time
	// Peer is the address of the asker, for records.
	Peer netip.Addr
	// StillAllowed reports, of a long answer, whether the asker may go on to ask; nil is always.
	StillAllowed func(ctx context.Context) bool
}

// Tenant is an organisation that can be asked about.
type Tenant struct {
	ID    string   `json:"id"`
	Teams []string `json:"teams"`
	// Policies names the policies that are switched on.
	Policies []string `json:"policies"`
	// Entries are those, as the section has them.
	Entries []Entry `json:"entries"`
}

// Entry is a policy that is switched on: in which mode, and for which callers. Empty lists are for all.
type Entry struct {
	Policy      string   `json:"policy"`
	Mode        string   `json:"mode"`
	Teams       []string `json:"teams,omitempty"`
	ExceptTeams []string `json:"exceptTeams,omitempty"`
	Roles       []string `json:"roles,omitempty"`
	ExceptRoles []string `json:"exceptRoles,omitempty"`
}

// String is the policy, and how it is switched on.
func (e Entry) String() string { return e.Policy + " " + e.Conditions() }

// Conditions says in which mode it is, and for whom.
func (e Entry) Conditions() string {
	var out strings.Builder
	out.WriteString(e.Mode)
	for _, of := range []struct {
		whom  string
		names []string
	}{{" for team ", e.Teams}, {" but for team ", e.ExceptTeams}, {" for role ", e.Roles}, {" but for role ", e.ExceptRoles}} {
		if len(of.names) > 0 {
			out.WriteString(of.whom + strings.Join(of.names, ", "))
		}
	}
	return out.String()
}

// Has reports whether the asker has a role.
func (s Principal) Has(r Role) bool {
	return r == Viewer || slices.Contains(s.Roles, r) || slices.Contains(s.Roles, Admin)
}

// MayContinue reports whether the asker may go on to ask.
func (s Principal) MayContinue(ctx context.Context) bool {
	return s.StillAllowed == nil || s.StillAllowed(ctx)
}

// Names of askers without a name of their own.
const (
	SharedAdmin = "admin"           // with the shared token
	OpenAdmin   = "unauthenticated" // where the listener requires no token
)

// Author returns the name under which a change by the asker is recorded: the name of a named asker, and SharedAdmin otherwise.
func (s Principal) Author() string {
	if s.Anonymous {
		return SharedAdmin
	}
	return s.Name
}

// RecordedName returns the name that an answer is recorded under. Askers without a name of their own give one.
func (s Principal) RecordedName(given string) (string, error) {
	switch {
	case s.Anonymous:
		return given, nil
	case given != "" && given != s.Name:
		return "", BadParam("by", "the token is that of %s", s.Name)
	}
	return s.Name, nil
}

// Visible returns the organisations that the asker may ask about.
func (s Principal) Visible() []Tenant {
	if s.Org == "" {
		return s.Orgs
	}
	return slices.DeleteFunc(slices.Clone(s.Orgs), func(t Tenant) bool { return t.ID != s.Org })
}

// OrgProblem returns why an organisation cannot be asked about, "" if it can.
func (s Principal) OrgProblem(id string) string {
	ids := make([]string, 0, len(s.Orgs))
	for _, t := range s.Visible() {
		ids = append(ids, t.ID)
	}
	return UnknownName("organisation", id, ids)
}

// TeamProblem returns why a team of an organisation, of any for "", cannot be asked about. No team, "", can.
func (s Principal) TeamProblem(org, id string) string {
	if id == "" {
		return ""
	}
	var ids []string
	for _, t := range s.Visible() {
		if org == "" || org == t.ID {
			ids = append(ids, t.Teams...)
		}
	}
	what := "team"
	if org != "" {
		what = "team of " + org
	}
	slices.Sort(ids)
	return UnknownName(what, id, slices.Compact(ids))
}

// UnknownName returns "" for a known name. For another it returns a sentence with the nearest name and all known ones.
func UnknownName(what, name string, known []string) string {
	if slices.Contains(known, name) {
		return ""
	}
	text := "no " + what + " is called " + quoted(name)
	if near := Nearest(name, known); near != "" {
		text += ", did you mean " + quoted(near) + "?"
	}
	if len(known) == 0 {
		return text + "; there is none"
	}
	return text + "; known: " + strings.Join(known, ", ")
}
