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

// AdminAccount is an operator with a token, as configured in admin.admins.
type AdminAccount struct {
	Name string `yaml:"name,required" doc:"short name, shown in the log, in the audit log and with the approvals that the admin granted"`

	Digest  identity.Digest `yaml:"sha256,required" doc:"SHA-256 of the token as 64 hexadecimal digits. The command tollgate keys create generates a token and its digest"`
	Roles   []adminapi.Role `yaml:"roles,required" doc:"roles of the admin: a viewer has read access, an operator can also reset limits and change owners and idle resources, an approver can answer approval requests, and an admin can do everything, including managing keys"`
	Org     string          `yaml:"org" doc:"organisation that the admin is restricted to. If empty, the admin has access to all organisations and to the gateway itself"`
	Expires time.Time       `yaml:"expires" doc:"time at which the token expires (RFC 3339). If absent, the token never expires"`
}

// MaxAdminName is the maximum length of an admin's name in bytes.
const MaxAdminName = 64

// reserved lists the names that the audit log uses for other actors.
var reserved = []string{adminapi.SharedAdmin, adminapi.OpenAdmin, "gateway", "link"} //nolint:gochecknoglobals // read only

// Validate returns all faults, each with its path relative to the account.
func (a *AdminAccount) Validate() error {
	var errs fault.Found
	errs.If(a.Name == "" || len(a.Name) > MaxAdminName ||
		strings.Trim(a.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@") != "", "name",
		"must consist of at most %d letters, digits, '-', '_', '.' and '@'", MaxAdminName)
	errs.If(slices.Contains(reserved, a.Name), "name", "%q is reserved for the audit log", a.Name)
	errs.If(len(a.Roles) == 0, "roles", "must contain at least one of %s", strings.Join(adminapi.Role("").Values(), ", "))
	return errors.Join(errs...)
}

// AdminIssuer is an OpenID Connect issuer whose tokens authenticate operators.
type AdminIssuer struct {
	ID                   string `yaml:"id,required" doc:"short name of the issuer. The audit log shows admins of this issuer as id:NAME"`
	identity.TokenIssuer `yaml:",inline"`

	Claims AdminClaims `yaml:"claims" doc:"claims that identify the admin, each as a claim name or a JSON pointer such as /realm_access/roles"`

	Grants map[string]adminapi.Role `yaml:"grants,required" doc:"role for each value of claims.roles. Other values are ignored, and a token without any listed value is refused"`
	Login  Login                    `yaml:"login" doc:"OAuth client that the console uses to log admins in at this issuer"`
	Org    string                   `yaml:"org" doc:"organisation that admins of this issuer are restricted to. If empty, the admins have access to all organisations and to the gateway itself"`
}

// Login is the OAuth client used to log people in with a browser. If ClientID is empty, the issuer offers no login.
type Login struct {
	ClientID     string            `yaml:"client_id" doc:"client ID, which must be listed in audiences. Register the redirect URL https://HOST/ui/login/callback for admins, or https://HOST/tollgate/ui/login/callback for callers. If empty, logins at this issuer are disabled"`
	ClientSecret strictyaml.Secret `yaml:"client_secret" doc:"client secret; omit it for a public client"`

	Scopes []string `yaml:"scopes" doc:"scopes to request besides openid, such as groups, so that the ID token contains the claims for roles"`
}

// validate returns a fault if the client ID is not among the audiences.
func (l *Login) validate(audiences []string) error {
	if l.ClientID == "" || slices.Contains(audiences, l.ClientID) {
		return nil
	}
	return fault.Errorf("login.client_id", "must be listed in audiences, because tokens are issued for this client")
}

// Client returns the login client for the issuer with the given URL.
func (l *Login) Client(issuer string) identity.LoginClient {
	c := identity.LoginClient{Issuer: issuer, ID: l.ClientID, Scopes: slices.Compact(append([]string{"openid"}, l.Scopes...))}
	if !l.ClientSecret.IsZero() {
		c.Secret = l.ClientSecret.Reveal()
	}
	return c
}

// AdminClaims names the claims of a token that identify an operator.
type AdminClaims struct {
	Name  string `yaml:"name" doc:"claim with the admin's name of at most 64 characters, such as email. If empty, sub is used"`
	Roles string `yaml:"roles" doc:"claim with the values that grants maps to roles. If empty, groups is used"`
}

// Validate returns all faults, each with its path relative to the issuer.
func (i *AdminIssuer) Validate() error {
	errs := fault.Found{i.TokenIssuer.Validate()}
	errs.If(i.ID == "" || strings.Trim(i.ID, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(i.ID) > 32, "id",
		"must consist of 1 to 32 letters a-z, digits, '-' and '_'")
	errs = append(errs, i.Login.validate(i.Audiences))
	errs.If(len(i.Grants) == 0, "grants", "must grant at least one role")
	return errors.Join(errs...)
}

// Logins returns the issuers that offer a login to callers.
func (c *Config) Logins() (out []identity.Login) {
	for i := range c.Issuers {
		if l := &c.Issuers[i].Login; l.ClientID != "" {
			out = append(out, identity.Login{ID: c.Issuers[i].ID, Client: l.Client(c.Issuers[i].URL)})
		}
	}
	return out
}
