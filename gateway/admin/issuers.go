package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// errNoRole is the error for a valid token that grants no role.
var errNoRole = errors.New("no claim of the token grants a role")

// WithIssuers returns a Directory that also accepts tokens of the given issuers, whose keys are in keys. The issuers must be valid
// and have distinct URLs.
func (d *Directory) WithIssuers(issuers []settings.AdminIssuer, keys *identity.IssuerKeys) *Directory {
	all := &Directory{byDigest: d.byDigest, issuers: make(map[string]*settings.AdminIssuer, len(issuers))}
	configs := make([]identity.TokenIssuer, len(issuers))
	for n := range issuers {
		configs[n] = issuers[n].TokenIssuer
		all.issuers[issuers[n].URL] = &issuers[n]
	}
	all.verifier = identity.NewVerifier(configs, keys)
	return all
}

// Verifier returns the verifier of the issuers' tokens.
func (d *Directory) Verifier() *identity.Verifier { return d.verifier }

// issued returns the admin for a token of an issuer that was presented at a time.
func (d *Directory) issued(ctx context.Context, token string, at time.Time) (adminapi.Principal, error) {
	claims, err := d.verifier.VerifyAt(ctx, token, at)
	if err != nil {
		return adminapi.Principal{}, err
	}
	i := d.issuers[claims.Issuer]
	a := adminapi.Principal{Org: i.Org}
	for _, value := range claims.Values(cmp.Or(i.Claims.Roles, "groups")) {
		if role, ok := i.Grants[value]; ok && !slices.Contains(a.Roles, role) {
			a.Roles = append(a.Roles, role)
		}
	}
	if len(a.Roles) == 0 {
		return adminapi.Principal{}, errNoRole
	}
	names := claims.Values(cmp.Or(i.Claims.Name, "sub"))
	if len(names) != 1 || names[0] == "" || len(names[0]) > settings.MaxAdminName ||
		strings.ContainsFunc(names[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
		return adminapi.Principal{}, errNoName
	}
	a.Name = i.ID + ":" + names[0]
	return a, nil
}

// errNoName is the error for a valid token without a usable name.
var errNoName = errors.New("token does not contain a name for the audit log")

// Logins returns the issuers with which people can log in, sorted by name.
func (d *Directory) Logins() (out []identity.Login) {
	for _, i := range d.issuers {
		if l := i.Login; l.ClientID != "" {
			out = append(out, identity.Login{ID: i.ID, Client: l.Client(i.URL)})
		}
	}
	slices.SortFunc(out, func(a, b identity.Login) int { return strings.Compare(a.ID, b.ID) })
	return out
}
