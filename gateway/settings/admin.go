package settings

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// AdminAccount is an admin of the configuration.
type AdminAccount struct {
	Name    string          `yaml:"name,required" doc:"short name, which the audit log, the log and grants of approvals show"`
	Digest  identity.Digest `yaml:"sha256,required" doc:"SHA-256 of the token, 64 hexadecimal digits; tollgate keys create makes both"`
	Roles   []adminapi.Role `yaml:"roles,required" doc:"rights of the admin: a viewer reads, an operator resets limits and changes owners and idle resources, an approver answers requests for approval, an admin does all of it and manages keys"`
	Org     string          `yaml:"org" doc:"organisation that the admin is bound to; empty is all of them and the gateway itself"`
	Expires time.Time       `yaml:"expires" doc:"when the token ceases to be accepted, RFC 3339; absent is never"`
}

// MaxAdminName bounds the name of an admin, in bytes.
const MaxAdminName = 64

// reserved are the names that the audit log gives to others.
var reserved = []string{adminapi.SharedAdmin, adminapi.OpenAdmin, "gateway", "link"} //nolint:gochecknoglobals // read only

// Validate reports every fault, each with its path below the account.
func (a *AdminAccount) Validate() error {
	var errs fault.Found
	errs.If(a.Name == "" || len(a.Name) > MaxAdminName || strings.Trim(a.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@") != "", "name", "must have letters, digits, '-', '_', '.' and '@' alone, and at most %d of them", MaxAdminName)
	errs.If(slices.Contains(reserved, a.Name), "name", "%q is reserved: the audit log uses it", a.Name)
	errs.If(len(a.Roles) == 0, "roles", "needs at least one of %s", strings.Join(adminapi.Role("").Values(), ", "))
	return errors.Join(errs...)
}

// AdminIssuer is an OpenID Connect issuer whose tokens are those of admins.
type AdminIssuer struct {
	ID                   string `yaml:"id,required" doc:"short name, with which the names of its admins begin in the audit log: id:NAME"`
	identity.TokenIssuer `yaml:",inline"`

	Claims AdminClaims              `yaml:"claims" doc:"which claims of a token say who its admin is: a name, or a JSON pointer such as /realm_access/roles"`
	Grants map[string]adminapi.Role `yaml:"grants,required" doc:"roles by values of claims.roles, of which others are ignored; a token that leads to none is refused"`
	Login  Login                    `yaml:"login" doc:"the client as which the console sends people to the issuer"`
	Org    string                   `yaml:"org" doc:"organisation that its admins are bound to; empty is all of them and the gateway itself"`
}

// Login is the client of an issuer as which people log in with a browser. Without a ClientID there is no such login.
type Login struct {
	ClientID     string            `yaml:"client_id" doc:"id of the client, which must be among audiences, with the redirect address https://HOST/ui/login/callback, or https://HOST/tollgate/ui/login/callback for callers; empty offers no login by the issuer"`
	ClientSecret strictyaml.Secret `yaml:"client_secret" doc:"secret of the client; absent for a public client"`
	Scopes       []string          `yaml:"scopes" doc:"scopes to ask for besides openid, such as groups, so that the ID token has the claims of roles"`
}

// validate reports a client whose tokens are for none of the audiences.
func (l *Login) validate(audiences []string) error {
	if l.ClientID == "" || slices.Contains(audiences, l.ClientID) {
		return nil
	}
	return fault.Errorf("login.client_id", "must be among audiences: the tokens of people who log in are for it")
}

// Client returns the client at the issuer with a URL.
func (l *Login) Client(issuer string) identity.LoginClient {
	c := identity.LoginClient{Issuer: issuer, ID: l.ClientID, Scopes: slices.Compact(append([]string{"openid"}, l.Scopes...))}
	if !l.ClientSecret.IsZero() {
		c.Secret = l.ClientSecret.Reveal()
	}
	return c
}

// AdminClaims names claims.
type AdminClaims struct {
	Name  string `yaml:"name" doc:"the admin's name, at most 64 characters, such as email; empty is sub"`
	Roles string `yaml:"roles" doc:"values that grants maps to roles, such as groups; empty is groups"`
}

// Validate reports every fault, each with its path below the issuer.
func (i *AdminIssuer) Validate() error {
	errs := fault.Found{i.TokenIssuer.Validate()}
	errs.If(i.ID == "" || strings.Trim(i.ID, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(i.ID) > 32, "id", "must be at most 32 of a-z, 0-9, - and _")
	errs = append(errs, i.Login.validate(i.Audiences))
	errs.If(len(i.Grants) == 0, "grants", "must give at least one role")
	return errors.Join(errs...)
}

// Logins returns the issuers where callers log in.
func (c *Config) Logins() (out []identity.Login) {
	for i := range c.Issuers {
		if l := &c.Issuers[i].Login; l.ClientID != "" {
			out = append(out, identity.Login{ID: c.Issuers[i].ID, Client: l.Client(c.Issuers[i].URL)})
		}
	}
	return out
}
