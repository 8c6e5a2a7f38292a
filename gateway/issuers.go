package gateway

import (
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// authorities compiles who signs certificates of callers.
func authoritiesOf(c *settings.Config) (*identity.Authorities, error) {
	list := make([]identity.Authority, len(c.Certificates.Authorities))
	for i, a := range c.Certificates.Authorities {
		list[i] = a.Authority
	}
	return identity.NewAuthorities(identity.Certificates{Authorities: list, Required: c.Certificates.Required}, c.HasTeam)
}

// issuers compiles the issuers of a configuration.
func (g *Gateway) issuers(cfg *settings.Config) *identity.Issuers {
	list := make([]identity.Issuer, len(cfg.Issuers))
	for i := range cfg.Issuers {
		list[i] = cfg.Issuers[i].Issuer
	}
	return identity.NewIssuers(list, g.issuerKeys, cfg.HasTeam)
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
