package explain

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/nextstate"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Audit is the result of checking all resources of an organisation against its policies.
type Audit struct {
	Org string `json:"org"`
	// Revision is the revision of the policies.
	Revision string `json:"revision"`
	// Ownerless is the reason why the owners of the resources are unknown, or "" if they are
	// known.
	Ownerless string            `json:"ownerless,omitempty"`
	Resources []AuditedResource `json:"resources"`
}

// AuditedResource is the result for one resource. Amounts are in USD; a month has 730 hours.
type AuditedResource struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	Team string `json:"team,omitempty"`
	Key  string `json:"key,omitempty"`
	// USDPerHour is the current cost, or "" if the cost is unknown.
	USDPerHour  string `json:"usdPerHour,omitempty"`
	USDPerMonth string `json:"usdPerMonth,omitempty"`
	// Verdict is refused if a policy denies the resource, unknown if it could not be checked because of Reason, and allowed otherwise.
	Verdict  Verdict  `json:"verdict"`
	Reason   string   `json:"reason,omitempty"`
	Policies []Policy `json:"policies,omitempty"`
}

// Auditor checks existing resources against policies. It evaluates the policies for an update that does not change the resource, sent by
// the owner of the resource with the role admin.
type Auditor struct {
	// Updates maps kinds of resources to their update operations.
	Updates map[operation.Kind]*schema.Operation
	Engine  *policies.Engine
}

// Run checks the resources of an organisation. owners lists the owners of the resources, in the order of the resources. If the owners are
// unknown, owners is nil. in contains the input common to all resources.
func (a *Auditor) Run(ctx context.Context, org string, list []upstream.Listed, owners []ledger.Owner, in policies.Input) *Audit {
	out := &Audit{Org: org, Resources: []AuditedResource{}}
	for i, it := range list {
		s := AuditedResource{ID: it.ID, Kind: string(it.Kind), Name: it.Name}
		one := in
		if owners != nil {
			s.Team, s.Key = owners[i].Team, owners[i].Key
			one.Resource.Owner = &policies.Owner{Team: s.Team, Key: s.Key}
		}
		if it.Priced {
			hourly := catalog.Money(it.Amounts[ledger.Burn])
			s.USDPerHour, s.USDPerMonth = hourly.String(), catalog.Monthly(hourly).String()
		}
		one.Caller = policies.Caller{Org: org, Team: s.Team, Key: s.Key, Roles: []string{"admin"}}
		d, err := a.evaluate(ctx, &one, &it)
		switch {
		case err != nil:
			s.Verdict, s.Reason = Unknown, err.Error()
		case len(d.Deny) > 0:
			s.Verdict = Refused
		default:
			s.Verdict = Allowed
		}
		if d.Revision != "" {
			out.Revision = d.Revision
		}
		s.Policies = slices.DeleteFunc(ResultsOf(&d), func(p Policy) bool { return p.Verdict == verdictChanges })
		out.Resources = append(out.Resources, s)
	}
	slices.SortFunc(out.Resources, func(a, b AuditedResource) int {
		return cmp.Or(cmp.Compare(a.Team, b.Team), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// evaluate evaluates the policies for one resource.
func (a *Auditor) evaluate(ctx context.Context, in *policies.Input, it *upstream.Listed) (policies.Decision, error) {
	op := a.Updates[it.Kind]
	if op == nil {
		return policies.Decision{}, nil // resources of this kind cannot be updated
	}
	body := map[string]any{}
	after, err := nextstate.Update(op.ID, it.Record, body, nil)
	if err != nil {
		return policies.Decision{}, err
	}
	params := map[string]string{"id": it.ID}
	in.Request = policies.Request{
		Operation: op.ID, Method: op.Method, Path: strings.Replace(op.Path, "{id}", url.PathEscape(it.ID), 1),
		Params: params, Body: body, Dialect: "v2",
	}
	in.Resource.Current, in.Resource.After = it.Record, after
	in.Cost = in.Catalog.Price(op.ID, operation.VerbUpdate, after)
	return a.Engine.Decide(ctx, in.Caller.Org, in)
}
