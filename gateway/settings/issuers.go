package settings

import (
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Issuer is an OpenID Connect issuer whose tokens identify callers. It also sets the rights of these callers.
type Issuer struct {
	identity.Issuer `yaml:",inline"`

	Login Login `yaml:"login" doc:"OAuth client that My team uses to log people in"`

	Limit  ratelimit.Limit `yaml:"limits" doc:"rate limits of each caller"`
	Budget ledger.Budget   `yaml:"budget" doc:"budget of each caller"`
}

// Certificates configures the identification of callers by client certificates.
type Certificates struct {
	Required    bool        `yaml:"required" doc:"refuse callers without an accepted certificate, even with a key or token. A key or token must belong to the same organisation as the certificate"`
	Authorities []Authority `yaml:"authorities" doc:"certificate authorities that sign callers' certificates"`
}

// Authority is a certificate authority whose certificates identify callers. It also sets the rights of these callers.
type Authority struct {
	identity.Authority `yaml:",inline"`

	Limit  ratelimit.Limit `yaml:"limits" doc:"rate limits of each caller"`
	Budget ledger.Budget   `yaml:"budget" doc:"budget of each caller"`
}

// Issued holds the rights that callers of one issuer or certificate authority have in one organisation. The IDs of these callers have a
// common prefix, see [IssuerKeyPrefix].
type Issued struct {
	ID     string
	Limit  ratelimit.Limit
	Budget ledger.Budget
}

// IssuerKeyPrefix returns the common prefix of the IDs of an issuer's callers. The limiter and the ledger store the default quotas and
// budgets of these callers under this prefix.
func IssuerKeyPrefix(issuer string) string { return issuer + ":" }
