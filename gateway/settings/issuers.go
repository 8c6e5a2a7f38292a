package settings

import (
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Issuer is an OpenID Connect issuer whose tokens identify callers, with the rights of these callers.
type Issuer struct {
	identity.Issuer `yaml:",inline"`

	Login Login `yaml:"login" doc:"OAuth client that My team uses to log people in at this issuer"`

	Limit  ratelimit.Limit `yaml:"limits" doc:"rate limits of each caller"`
	Budget ledger.Budget   `yaml:"budget" doc:"budget of each caller"`
}

// Certificates configures the client certificates that identify callers.
type Certificates struct {
	Required    bool        `yaml:"required" doc:"refuse callers without an accepted certificate, even if they send a key or token. The certificate and the key or token must belong to the same organisation"`
	Authorities []Authority `yaml:"authorities" doc:"certificate authorities that sign callers' certificates"`
}

// Authority is a certificate authority whose certificates identify callers, with the rights of these callers.
type Authority struct {
	identity.Authority `yaml:",inline"`

	Limit  ratelimit.Limit `yaml:"limits" doc:"rate limits of each caller"`
	Budget ledger.Budget   `yaml:"budget" doc:"budget of each caller"`
}

// Issued holds the rights of the callers of an issuer or certificate authority in one organisation. The caller IDs share a prefix, see
// [IssuerKeyPrefix].
type Issued struct {
	ID     string
	Limit  ratelimit.Limit
	Budget ledger.Budget
}

// IssuerKeyPrefix returns the common prefix of the IDs of an issuer's callers. Their quotas and budgets are stored under it.
func IssuerKeyPrefix(issuer string) string { return issuer + ":" }
