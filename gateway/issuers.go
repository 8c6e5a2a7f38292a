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

// Certificates says which certificates identify callers.
type Certificates struct {
	Required    bool        `yaml:"required" doc:"refuse whoever has no certificate that is accepted, a key or token or not; of a caller with both, they must be of the same organisation"`
	Authorities []Authority `yaml:"authorities" doc:"who signs them"`
}

// Authority is an authority whose certificates identify callers, and what each of these
// may do.
type Authority struct {
	identity.Authority `yaml:",inline"`

	Limit  ratelimit.Limit `yaml:"limits" doc:"quotas of each caller"`
	Budget spend.Budget    `yaml:"budget" doc:"what each caller may spend"`
}

// Issued is what an organisation's callers may do, each of them, whose ids begin as those
// of an issuer or authority do.
type Issued struct {
	ID     string
	Limit  ratelimit.Limit
	Budget spend.Budget
}

// keysOf is the id under which the quotas and the budget of each caller of an issuer are
// kept, whose own ids begin so.
func keysOf(issuer string) string { return issuer + ":" }

// AssignIssued gives each organisation the issuers and authorities that speak for it.
func (c *Config) AssignIssued() {
	for n := range c.Orgs {
		o := &c.Orgs[n]
		o.Issued = nil
		for _, i := range c.Issuers {
			if slices.Contains(i.Orgs, o.ID) {
				o.Issued = append(o.Issued, Issued{i.ID, i.Limit, i.Budget})
			}
		}
		for _, a := range c.Certificates.Authorities {
			if slices.Contains(a.Orgs, o.ID) {
				o.Issued = append(o.Issued, Issued{a.ID, a.Limit, a.Budget})
			}
		}
	}
}

// hasTeam reports whether an organisation has a team.
func (c *Config) hasTeam(org, team string) bool {
	o := c.org(org)
	return o != nil && slices.ContainsFunc(o.Teams, func(t Team) bool { return t.ID == team })
}

// validateIssuers reports what is wrong with issuers and authorities, on their own and
// beside the organisations.
func (c *Config) validateIssuers() error {
	var errs fault.Found
	ids, urls := make(map[string]bool), make(map[string]bool)
	issued := func(at, id string, m *identity.Mapping, limit *ratelimit.Limit, budget *spend.Budget) {
		errs = append(errs, fault.At(at+".limits", limit.Validate()), fault.At(at+".budget", budget.Validate()), fault.At(at, c.validateMapping(m)))
		errs.If(ids[id], at+".id", "issuer %q is already defined", id)
		ids[id] = true
	}
	for n := range c.Issuers {
		i, at := &c.Issuers[n], fault.Index("issuers", n)
		errs = append(errs, fault.At(at, i.Validate()))
		issued(at, i.ID, &i.Mapping, &i.Limit, &i.Budget)
		errs.If(urls[i.URL], at+".url", "another issuer has the same")
		urls[i.URL] = true
	}
	for n := range c.Certificates.Authorities {
		a, at := &c.Certificates.Authorities[n], fault.Index("certificates.authorities", n)
		errs = append(errs, fault.At(at, a.Validate()))
		issued(at, a.ID, &a.Mapping, &a.Limit, &a.Budget)
	}
	for n, o := range c.Orgs {
		for m, k := range o.Keys {
			if issuer, _, found := strings.Cut(k.ID, ":"); found && ids[issuer] {
				errs = append(errs, fault.Errorf(fault.Index(fault.Index("orgs", n)+".keys", m)+".id", "begins as the ids of the callers of issuer %q do", issuer))
			}
		}
	}
	return errors.Join(append(errs, fault.At("certificates", c.validateCertificates()))...)
}

// validateCertificates reports certificates that no listener asks for.
func (c *Config) validateCertificates() error {
	switch n := len(c.Certificates.Authorities); {
	case n == 0 && c.Certificates.Required:
		return fault.Errorf("required", "needs authorities")
	case n > 0 && c.TLS.Certificate.IsZero():
		return fault.Errorf("authorities", "need tls, without which the data listener asks for no certificates")
	case c.Certificates.Required && c.Envoy.Listen != "":
		return fault.Errorf("required", "cannot be held through envoy.listen: an Envoy does not tell what certificate its caller has")
	}
	return nil
}

// validateMapping reports organisations, teams and labels that there are not.
func (c *Config) validateMapping(m *identity.Mapping) error {
	var errs fault.Found
	for n, org := range m.Orgs {
		errs.If(c.org(org) == nil, fault.Index("orgs", n), "no organisation %q is defined", org)
	}
	known := func(team string) bool {
		return slices.ContainsFunc(m.Orgs, func(org string) bool { return c.hasTeam(org, team) })
	}
	errs.If(m.Team != "" && !known(m.Team), "team", "none of its organisations has a team %q", m.Team)
	for value, team := range m.Teams {
		errs.If(!known(team), fault.Key("teams", value), "none of its organisations has a team %q", team)
	}
	for name := range m.Labels {
		for _, o := range c.Orgs {
			errs.If(slices.Contains(m.Orgs, o.ID) && !slices.ContainsFunc(o.Labels, func(r spend.LabelRule) bool { return r.Name == name }), fault.Key("labels", name), "organisation %q has no label %q", o.ID, name)
		}
	}
	return errors.Join(errs...)
}

// authorities compiles who signs certificates of callers.
func (c *Config) authorities() (*identity.Authorities, error) {
	list := make([]identity.Authority, len(c.Certificates.Authorities))
	for i, a := range c.Certificates.Authorities {
		list[i] = a.Authority
	}
	return identity.NewAuthorities(identity.Certificates{Authorities: list, Required: c.Certificates.Required}, c.hasTeam)
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
