package settings

import (
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Issuer is an issuer whose tokens identify callers, and what each of these may do.
type Issuer struct {
	identity.Issuer `yaml:",inline"`

	Login Login `yaml:"login" doc:"the client as which the pages of callers send people to the issuer"`

	Limit  ratelimit.Limit `yaml:"limits" doc:"quotas of each caller"`
	Budget ledger.Budget   `yaml:"budget" doc:"what each caller may spend"`
}

// Certificates says which certificates identify callers.
type Certificates struct {
	Required    bool        `yaml:"required" doc:"refuse every caller without an accepted certificate, even with a key or token; a caller's certificate and key must be of the same organisation"`
	Authorities []Authority `yaml:"authorities" doc:"who signs them"`
}

// Authority is an authority whose certificates identify callers, and what each of these
// may do.
type Authority struct {
	identity.Authority `yaml:",inline"`

	Limit  ratelimit.Limit `yaml:"limits" doc:"quotas of each caller"`
	Budget ledger.Budget   `yaml:"budget" doc:"what each caller may spend"`
}

// Issued holds the rights of each of an organisation's callers, whose ids begin as those
// of an issuer or authority do.
type Issued struct {
	ID     string
	Limit  ratelimit.Limit
	Budget ledger.Budget
}

// IssuerKeyPrefix is the id under which the quotas and the budget of each caller of an issuer are
// kept, whose own ids begin so.
func IssuerKeyPrefix(issuer string) string { return issuer + ":" }
