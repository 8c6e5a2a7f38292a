package gateway

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
	"github.com/tollgate-dev/tollgate/policies/spend"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Issuer is an issuer whose tokens identify callers, and what each of these may do.
type Issuer struct {
	identity.Issuer `yaml:",inline"`

	Limit  ratelimit.Limit `yaml:"limits" doc:"quotas of each caller"`
	Budget spend.Budget    `yaml:"budget" doc:"what each caller may spend"`
}

// keysOf is the id under which the quotas and the budget of each caller of an issuer are
// kept, whose own ids begin so.
func keysOf(issuer string) string { return issuer + ":" }

// AssignIssuers gives each organisation the issuers that speak for it.
func (c *Config) AssignIssuers() {
	for n := range c.Orgs {
		o := &c.Orgs[n]
		o.Issuers = slices.DeleteFunc(slices.Clone(c.Issuers), func(i Issuer) bool { return !slices.Contains(i.Orgs, o.ID) })
	}
}

// hasTeam reports whether an organisation has a team.
func (c *Config) hasTeam(org, team string) bool {
	return slices.ContainsFunc(c.Orgs, func(o Org) bool {
		return o.ID == org && slices.ContainsFunc(o.Teams, func(t Team) bool { return t.ID == team })
	})
}

// validateIssuers reports what is wrong with issuers, on their own and beside the
// organisations.
func (c *Config) validateIssuers() error {
	var errs []error
	ids, urls := make(map[string]bool), make(map[string]bool)
	for n := range c.Issuers {
		i, at := &c.Issuers[n], fault.Index("issuers", n)
		errs = append(errs, fault.At(at, i.Validate()), fault.At(at+".limits", i.Limit.Validate()), fault.At(at+".budget", i.Budget.Validate()))
		if ids[i.ID] {
			errs = append(errs, fault.Errorf(at+".id", "issuer %q is already defined", i.ID))
		}
		if urls[i.URL] {
			errs = append(errs, fault.Errorf(at+".url", "another issuer has the same"))
		}
		ids[i.ID], urls[i.URL] = true, true
		for m, org := range i.Orgs {
			if !slices.ContainsFunc(c.Orgs, func(o Org) bool { return o.ID == org }) {
				errs = append(errs, fault.Errorf(fault.Index(at+".orgs", m), "no organisation %q is defined", org))
			}
		}
		errs = append(errs, c.validateTeams(i, at), c.validateLabels(i, at))
	}
	for n, o := range c.Orgs {
		for m, k := range o.Keys {
			if issuer, _, issued := strings.Cut(k.ID, ":"); issued && ids[issuer] {
				errs = append(errs, fault.Errorf(fault.Index(fault.Index("orgs", n)+".keys", m)+".id", "begins as the ids of the callers of issuer %q do", issuer))
			}
		}
	}
	return errors.Join(errs...)
}

// validateTeams reports teams that no organisation has that the issuer speaks for.
func (c *Config) validateTeams(i *Issuer, at string) error {
	var errs []error
	known := func(team string) bool {
		return slices.ContainsFunc(i.Orgs, func(org string) bool { return c.hasTeam(org, team) })
	}
	if i.Team != "" && !known(i.Team) {
		errs = append(errs, fault.Errorf(at+".team", "none of its organisations has a team %q", i.Team))
	}
	for value, team := range i.Teams {
		if !known(team) {
			errs = append(errs, fault.Errorf(fault.Key(at+".teams", value), "none of its organisations has a team %q", team))
		}
	}
	return errors.Join(errs...)
}

// validateLabels reports labels that an organisation does not have.
func (c *Config) validateLabels(i *Issuer, at string) error {
	var errs []error
	for name := range i.Labels {
		for _, o := range c.Orgs {
			if slices.Contains(i.Orgs, o.ID) && !slices.ContainsFunc(o.Labels, func(r spend.LabelRule) bool { return r.Name == name }) {
				errs = append(errs, fault.Errorf(fault.Key(at+".labels", name), "organisation %q has no label %q", o.ID, name))
			}
		}
	}
	return errors.Join(errs...)
}

// issuers compiles the issuers of a configuration.
func (g *Gateway) issuers(cfg *Config) *identity.Issuers {
	list := make([]identity.Issuer, len(cfg.Issuers))
	for i := range cfg.Issuers {
		list[i] = cfg.Issuers[i].Issuer
	}
	return identity.NewIssuers(list, g.issuerKeys, cfg.hasTeam)
}

// issuersSource says how the keys of all issuers are doing: when the one was read that
// was read the longest ago, and whether any could not be. It reports false without issuers.
func issuersSource(list []oidc.Status) (source, bool) {
	s := source{kind: "issuers"}
	for i, one := range list {
		s.failed = s.failed || one.Err != nil
		if i == 0 || one.Fetched.Before(s.good) {
			s.good = one.Fetched
		}
	}
	return s, len(list) > 0 && (s.failed || s.good != time.Time{})
}
