package callers

import (
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies"
)

// Orgs lists the organisations of a configuration in the form that the admin API uses.
func Orgs(c *settings.Config) []adminapi.Tenant {
	out := make([]adminapi.Tenant, len(c.Orgs))
	for i := range c.Orgs {
		o := &c.Orgs[i]
		zone, _ := o.Zone.MarshalText() // never fails
		out[i] = adminapi.Tenant{ID: o.ID, Teams: TeamIDs(o), Zone: string(zone), Policies: []string{}, Entries: []adminapi.Entry{}}
		for _, e := range o.Policies.Policies {
			out[i].Policies = append(out[i].Policies, e.Policy)
			out[i].Entries = append(out[i].Entries, AdminEntry(&e))
		}
	}
	return out
}

// AdminEntry returns an entry of the configuration in the form that the admin API uses.
func AdminEntry(e *policies.Entry) adminapi.Entry {
	return adminapi.Entry{
		Policy: e.Policy, Mode: string(e.Mode.OrDefault()), Teams: e.Teams, ExceptTeams: e.ExceptTeams,
		Roles: e.Roles, ExceptRoles: e.ExceptRoles,
	}
}

// TeamIDs returns the ids of an organisation's teams.
func TeamIDs(o *settings.Org) []string {
	ids := make([]string, len(o.Teams))
	for i := range o.Teams {
		ids[i] = o.Teams[i].ID
	}
	return ids
}

// Entries returns the policies that an organisation has enabled, in any mode, or nil for an unknown organisation.
func Entries(c *settings.Config, org string) []policies.Entry {
	if o := c.Org(org); o != nil {
		return o.Policies.Policies
	}
	return nil
}
