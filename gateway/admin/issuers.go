package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/oidc"
)

// Issuer is an OpenID Connect issuer whose tokens are those of admins.
type Issuer struct {
	ID          string `yaml:"id,required" doc:"short name, with which the names of its admins begin in the audit log: id:NAME"`
	oidc.Config `yaml:",inline"`

	Claims ClaimNames          `yaml:"claims" doc:"which claims of a token say who its admin is: a name, or a JSON pointer such as /realm_access/roles"`
	Grants map[string]row.Role `yaml:"grants,required" doc:"roles by values of claims.roles, of which others are ignored; a token that leads to none is refused"`
	Org    string              `yaml:"org" doc:"organisation that its admins are bound to; empty is all of them and the gateway itself"`
}

// ClaimNames names claims.
type ClaimNames struct {
	Name  string `yaml:"name" doc:"the admin's name, at most 64 characters, such as email; empty is sub"`
	Roles string `yaml:"roles" doc:"values that grants maps to roles, such as groups; empty is groups"`
}

// Validate reports every fault, each with its path below the issuer.
func (i *Issuer) Validate() error {
	errs := fault.Found{i.Config.Validate()}
	errs.If(i.ID == "" || strings.Trim(i.ID, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(i.ID) > 32, "id", "must be at most 32 of a-z, 0-9, - and _")
	errs.If(len(i.Grants) == 0, "grants", "must give at least one role")
	return errors.Join(errs...)
}

// errNoRole is the end of a token that is accepted and gives no role.
var errNoRole = errors.New("nothing that the token says gives it a role")

// WithIssuers returns a Directory that accepts the tokens of issuers besides, whose keys
// are among keys. The issuers must be valid, each with a URL of its own.
func (d *Directory) WithIssuers(issuers []Issuer, keys *oidc.Keys) *Directory {
	all := &Directory{byDigest: d.byDigest, issuers: make(map[string]*Issuer, len(issuers))}
	configs := make([]oidc.Config, len(issuers))
	for n := range issuers {
		configs[n] = issuers[n].Config
		all.issuers[issuers[n].URL] = &issuers[n]
	}
	all.verifier = oidc.NewVerifier(configs, keys)
	return all
}

// Verifier returns what verifies the tokens of issuers.
func (d *Directory) Verifier() *oidc.Verifier { return d.verifier }

// issued returns the admin that a token was issued to.
func (d *Directory) issued(ctx context.Context, token string) (row.Scope, error) {
	claims, err := d.verifier.Verify(ctx, token)
	if err != nil {
		return row.Scope{}, err
	}
	i := d.issuers[claims.Issuer]
	a := row.Scope{Org: i.Org}
	for _, value := range claims.Values(cmp.Or(i.Claims.Roles, "groups")) {
		if role, ok := i.Grants[value]; ok && !slices.Contains(a.Roles, role) {
			a.Roles = append(a.Roles, role)
		}
	}
	if len(a.Roles) == 0 {
		return row.Scope{}, errNoRole
	}
	names := claims.Values(cmp.Or(i.Claims.Name, "sub"))
	if len(names) != 1 || names[0] == "" || len(names[0]) > maxName || strings.ContainsFunc(names[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
		return row.Scope{}, errNoName
	}
	a.Name = i.ID + ":" + names[0]
	return a, nil
}

// errNoName is the end of a token that is accepted and names no admin.
var errNoName = errors.New("the token has no name that can be recorded")
