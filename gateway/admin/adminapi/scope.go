package adminapi

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Role is a set of permissions of an operator.
type Role string

// Roles. Every operator has the role viewer.
const (
	// Viewer can read.
	Viewer Role = "viewer"
	// Operator can operate the gateway: counters, resource owners, idle resources, profiles.
	Operator Role = "operator"
	// Approver can answer approval requests.
	Approver Role = "approver"
	// Admin includes all other roles and is required to manage callers' keys.
	Admin Role = "admin"

	// Anyone is the role of endpoints that require no token.
	Anyone Role = ""
)

// Values returns all roles.
func (Role) Values() []string {
	return []string{string(Viewer), string(Operator), string(Approver), string(Admin)}
}

// Principal is an authenticated operator with the organisations it can access. It is immutable.
type Principal struct {
	// Name identifies the operator in the audit log.
	Name string
	// Anonymous is set if the principal uses the shared token or no token. Such a principal states its name for each
	// record.
	Anonymous bool
	Roles     []Role
	// Org is the organisation that the principal is bound to, or "".
	Org string
	// Orgs are the accessible organisations.
	Orgs []Tenant
	// Now is the time of the call.
	Now time.Time
	// Peer is the address of the client, for records.
	Peer netip.Addr
	// StillAllowed reports, during a long response, whether the principal may still call the endpoint; nil means always.
	StillAllowed func(ctx context.Context) bool
}

// Tenant is an accessible organisation.
type Tenant struct {
	ID    string   `json:"id"`
	Teams []string `json:"teams"`
	// Zone is the IANA name of the time zone of budgets. Empty means UTC.
	Zone string `json:"zone,omitempty"`
	// Policies lists the names of the enabled policies.
	Policies []string `json:"policies"`
	// Entries lists the policy entries as configured.
	Entries []Entry `json:"entries"`
}

// Entry is an enabled policy, with its mode and the callers that it applies to. Empty lists mean all callers.
type Entry struct {
	Policy      string   `json:"policy"`
	Mode        string   `json:"mode"`
	Teams       []string `json:"teams,omitempty"`
	ExceptTeams []string `json:"exceptTeams,omitempty"`
	Roles       []string `json:"roles,omitempty"`
	ExceptRoles []string `json:"exceptRoles,omitempty"`
}

// String returns the name of the policy and its conditions.
func (e Entry) String() string { return e.Policy + " " + e.Conditions() }

// Conditions describes the mode of the entry and the callers that the entry applies to.
func (e Entry) Conditions() string {
	var out strings.Builder
	out.WriteString(e.Mode)
	for _, of := range []struct {
		whom  string
		names []string
	}{{" for team ", e.Teams}, {" except for team ", e.ExceptTeams}, {" for role ", e.Roles}, {" except for role ", e.ExceptRoles}} {
		if len(of.names) > 0 {
			out.WriteString(of.whom + strings.Join(of.names, ", "))
		}
	}
	return out.String()
}

// Has reports whether the principal has a role.
func (s Principal) Has(r Role) bool {
	return r == Viewer || slices.Contains(s.Roles, r) || slices.Contains(s.Roles, Admin)
}

// MayContinue reports whether the principal may still call the endpoint.
func (s Principal) MayContinue(ctx context.Context) bool {
	return s.StillAllowed == nil || s.StillAllowed(ctx)
}

// Names of anonymous principals.
const (
	SharedAdmin = "admin"           // with the shared token
	OpenAdmin   = "unauthenticated" // if the listener requires no token
)

// RecordedName returns the name to record for a principal's decision: the principal's own name or, for an anonymous principal, the name in
// the request. It returns a [FaultsError] if an anonymous principal gives no name, or if another principal gives a name that is not its
// own.
func (s Principal) RecordedName(name string) (string, error) {
	switch {
	case s.Anonymous:
		return name, nil
	case name != "" && name != s.Name:
		return "", BadParam("by", "must be the owner of the token, %s", s.Name)
	}
	return s.Name, nil
}

// Visible returns the organisations that the principal can access.
func (s Principal) Visible() []Tenant {
	if s.Org == "" {
		return s.Orgs
	}
	return slices.DeleteFunc(slices.Clone(s.Orgs), func(t Tenant) bool { return t.ID != s.Org })
}

// OrgProblem returns the reason why the principal cannot access an organisation, or "".
func (s Principal) OrgProblem(id string) string {
	ids := make([]string, 0, len(s.Orgs))
	for _, t := range s.Visible() {
		ids = append(ids, t.ID)
	}
	return UnknownName("organisation", id, ids)
}

// TeamProblem returns the reason why the principal cannot access a team of an organisation, or of any organisation if org is "". An
// empty team ID is always accessible.
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

// UnknownName returns "" if name is known. Otherwise it returns a message with the nearest known name and all known
// names.
func UnknownName(what, name string, known []string) string {
	if slices.Contains(known, name) {
		return ""
	}
	text := "unknown " + what + " " + strconv.Quote(name)
	if near := Nearest(name, known); near != "" {
		text += ", did you mean " + strconv.Quote(near) + "?"
	}
	if len(known) == 0 {
		return text + "; none is known"
	}
	return text + "; known: " + strings.Join(known, ", ")
}
