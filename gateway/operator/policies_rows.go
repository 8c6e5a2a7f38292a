package operator

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/compiler"
)

// PolicyDetails describes a policy that an organisation can have in force.
type PolicyDetails struct {
	Policy string `json:"policy"`
	// Title and Description are empty for a policy of the organisation's own Rego.
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Own reports whether the policy is in the organisation's own Rego. Changes reports whether the policy may
	// change the body of a call.
	Own     bool `json:"own,omitempty"`
	Changes bool `json:"changes,omitempty"`
	// InForce lists the configured entries of the policy. It is empty for a policy that is not in force.
	InForce    []PolicyEntry     `json:"inForce"`
	Parameters []PolicyParameter `json:"parameters"`
	// Example is a section of the configuration that puts the policy in force, as YAML.
	Example string `json:"example,omitempty"`
	// Configuration is a section of the configuration with the entries in force, as YAML. It is empty for a policy that is not in force.
	Configuration string `json:"configuration,omitempty"`
}

// PolicyEntry is an entry of the configuration for a policy.
type PolicyEntry struct {
	adminapi.Entry

	// Approvable reports whether operators may approve single calls that the policy denies.
	Approvable bool           `json:"approvable,omitempty"`
	Params     map[string]any `json:"params,omitempty"`
}

// PolicyParameter describes a parameter of a policy.
type PolicyParameter struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"`
	Required    bool   `json:"required,omitempty"`
	// Default is nil for a parameter without a default.
	Default any `json:"default,omitempty"`
}

// PolicyList holds descriptions of policies.
type PolicyList struct {
	Policies []PolicyDetails `json:"policies"`
}

// Policies describes the policies of organisations to operators. The endpoint of a zero Policies
// can be listed but not called.
type Policies struct{ *view.Current }

// policySelection holds the parameters that select the policies to describe.
type policySelection struct {
	adminapi.OrgParam

	Policy string `query:"policy" doc:"only this policy"`
	All    bool   `query:"all" doc:"include library policies that are not in force"`
}

// Endpoints returns the admin API endpoint that describes policies.
func (d Policies) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{{
		Pattern: "GET /admin/policies", Summary: "Policies in force, with their parameters and an example",
		Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.list),
	}}
}

// list describes the policies in the order of the configuration, then the library policies that are not in force.
func (d Policies) list(_ context.Context, _ adminapi.Principal, p policySelection) (*PolicyList, error) {
	library := compiler.Library()
	out := &PolicyList{Policies: []PolicyDetails{}}
	entries := make(map[string][]policies.Entry)
	for _, e := range callers.Entries(d.Config(), string(p.Org)) {
		if p.Policy == "" || p.Policy == e.Policy {
			x := out.add(e.Policy, library)
			x.InForce = append(x.InForce, PolicyEntry{Entry: callers.AdminEntry(&e), Approvable: e.Approvable, Params: e.Params})
			entries[e.Policy] = append(entries[e.Policy], e)
		}
	}
	for i := range out.Policies {
		x := &out.Policies[i]
		x.Configuration = compiler.EntriesYAML(entries[x.Policy])
	}
	for i := range library {
		if name := library[i].Name; p.Policy == name || p.Policy == "" && p.All {
			out.add(name, library)
		}
	}
	return out, nil
}

// add returns the description of a policy in the list. It adds the policy if it is missing.
func (l *PolicyList) add(name string, library []compiler.Policy) *PolicyDetails {
	i := slices.IndexFunc(l.Policies, func(x PolicyDetails) bool { return x.Policy == name })
	if i < 0 {
		i, l.Policies = len(l.Policies), append(l.Policies, describePolicy(name, library))
	}
	return &l.Policies[i]
}

// describePolicy returns the description of a policy. A policy that is not in the library belongs to the organisation's
// own Rego.
func describePolicy(name string, library []compiler.Policy) PolicyDetails {
	out := PolicyDetails{Policy: name, InForce: []PolicyEntry{}, Parameters: []PolicyParameter{}}
	i := slices.IndexFunc(library, func(x compiler.Policy) bool { return x.Name == name })
	if i < 0 {
		out.Own = true
		return out
	}
	x := &library[i]
	out.Title, out.Description, out.Changes = x.Title, x.Description, x.Mutates
	out.Example = x.ExampleYAML()
	for _, param := range x.Params {
		out.Parameters = append(out.Parameters, PolicyParameter{
			Name: param.Name, Description: param.Description, Type: param.TypeName(), Required: param.Required, Default: param.Schema["default"],
		})
	}
	return out
}
