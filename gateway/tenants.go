package gateway

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/route"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/load"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate/brownout"
)

// newTenants compiles the organisations, by id.
func newTenants(cfg *Config, api *schema.API) (map[string]*filter.Tenant, error) {
	library, err := load.Library()
	if err != nil {
		return nil, err
	}
	tenants := make(map[string]*filter.Tenant, len(cfg.Orgs))
	var errs []error
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		t := &filter.Tenant{
			ID: o.ID, Failure: o.Failure.byClass(), Scopes: o.scopes(), Weights: make(map[string]int64), Classes: make(map[string][]filter.Class),
			Brownouts: make(map[route.Dialect]*brownout.Schedule), ChangesBodies: o.changesBodies(library),
		}
		for _, team := range o.Teams {
			if team.Weight > 0 {
				t.Weights[team.ID] = team.Weight
			}
		}
		for j, c := range o.Classes {
			for k, op := range c.Operations {
				if api.Operation(op) == nil {
					errs = append(errs, fault.Errorf(fmt.Sprintf("orgs[%d].classes[%d].operations[%d]", i, j, k), "the v2 API has no operation %q", op))
				}
				t.Classes[op] = append(t.Classes[op], c.class())
			}
		}
		for _, dialect := range []route.Dialect{route.V1, route.GraphQL} {
			if s := brownout.New(o.Brownouts, brownout.Dialect(dialect)); s != nil {
				t.Brownouts[dialect] = s
			}
		}
		tenants[o.ID] = t
	}
	return tenants, errors.Join(errs...)
}

// scopes lists what the callers of an organisation are counted in, by key id.
func (o *Org) scopes() map[string][]ratelimit.Scope {
	teams := make(map[string]ratelimit.Limit, len(o.Teams))
	for _, t := range o.Teams {
		teams[t.ID] = t.Limit
	}
	scopes := make(map[string][]ratelimit.Scope, len(o.Keys))
	for _, k := range o.Keys {
		for _, s := range []ratelimit.Scope{
			{Kind: ratelimit.KindKey, ID: k.ID, Limit: k.Limit},
			{Kind: ratelimit.KindTeam, ID: k.Team, Limit: teams[k.Team]},
			{Kind: ratelimit.KindOrg, ID: o.ID, Limit: o.Limit},
		} {
			if !s.Limit.Unlimited() {
				scopes[k.ID] = append(scopes[k.ID], s)
			}
		}
	}
	return scopes
}

// changesBodies reports whether the policies of an organisation may change
// bodies: those of the library that do, and any of its own.
func (o *Org) changesBodies(library []load.Policy) bool {
	return o.Policies.Directory != "" || o.Policies.Bundle != nil ||
		slices.ContainsFunc(o.Policies.Policies, func(e policies.Entry) bool {
			return slices.ContainsFunc(library, func(p load.Policy) bool { return p.Name == e.Policy && p.Mutates })
		})
}
