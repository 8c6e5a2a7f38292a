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
	Name string `yaml:"name,required" doc:"short name, shown in logs, audit log and approvals"`

	Digest  identity.Digest `yaml:"sha256,required" doc:"SHA-256 of the token as 64 hexadecimal digits; tollgate keys create prints both"`
	Roles   []adminapi.Role `yaml:"roles,required" doc:"viewer can read; operator can also reset limits and change owners and idle resources; approver can answer approval requests; admin can do everything, including managing keys"`
	Org     string          `yaml:"org" doc:"organisation that the admin is restricted to; default all organisations and the gateway itself"`
	Expires time.Time       `yaml:"expires" doc:"expiry time of the token (RFC 3339); default never"`
}

// MaxAdminName is the maximum length of an admin's name in bytes.
const MaxAdminName = 64

// reserved lists the names that operators may not have, because the audit log uses them for other actors.
var reserved = []string{adminapi.SharedAdmin, adminapi.OpenAdmin, "gateway", "link"} //nolint:gochecknoglobals // read only

// Validate returns all faults of the account, joined. Their paths are relative to the account.
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
	ID                   string `yaml:"id,required" doc:"short name of the issuer. The audit log shows its admins as id:NAME"`
	identity.TokenIssuer `yaml:",inline"`

	Claims AdminClaims `yaml:"claims" doc:"claims that identify the admin, as claim names or JSON pointers such as /realm_access/roles"`

	Grants map[string]adminapi.Role `yaml:"grants,required" doc:"role for each value of claims.roles. Other values are ignored, and a token without a listed value is refused"`
	Login  Login                    `yaml:"login" doc:"OAuth client that the console uses to log admins in"`
	Org    string                   `yaml:"org" doc:"organisation that the issuer's admins are restricted to; default as for admins"`
}

// Login configures the OAuth client for logins with a browser. If ClientID is empty, the issuer cannot be used to log in.
type Login struct {
	ClientID     string            `yaml:"client_id" doc:"client ID, which must be in audiences; empty disables logins. Register the redirect URL https://HOST/ui/login/callback for admins, or https://HOST/tollgate/ui/login/callback for callers"`
	ClientSecret strictyaml.Secret `yaml:"client_secret" doc:"client secret; omit it for a public client"`

	Scopes []string `yaml:"scopes" doc:"scopes to request in addition to openid, such as groups for claims with roles"`
}

// validate returns a fault if audiences does not contain the client ID.
func (l *Login) validate(audiences []string) error {
	if l.ClientID == "" || slices.Contains(audiences, l.ClientID) {
		return nil
	}
	return fault.Errorf("login.client_id", "must be listed in audiences, because tokens are issued for this client")
}

// Client returns the login client for the issuer with the given URL.
func (l *Login) Client(issuer string) identity.LoginClient {
	return identity.LoginClient{
		Issuer: issuer, ID: l.ClientID, Secret: l.ClientSecret.Reveal(), Scopes: slices.Compact(append([]string{"openid"}, l.Scopes...)),
	}
}

// AdminClaims names the claims of a token that identify an operator.
type AdminClaims struct {
	Name  string `yaml:"name" doc:"claim with the admin's name of at most 64 characters, such as email; default sub"`
	Roles string `yaml:"roles" doc:"claim with the values listed in grants; default groups"`
}

// Validate returns all faults of the issuer, joined. Their paths are relative to the issuer.
func (i *AdminIssuer) Validate() error {
	errs := fault.Found{i.TokenIssuer.Validate()}
	errs.If(i.ID == "" || strings.Trim(i.ID, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || len(i.ID) > 32, "id",
		"must consist of 1 to 32 letters a-z, digits, '-' and '_'")
	errs = append(errs, i.Login.validate(i.Audiences))
	errs.If(len(i.Grants) == 0, "grants", "must grant at least one role")
	return errors.Join(errs...)
}

// Logins returns the login configuration of each issuer with which callers can log in.
func (c *Config) Logins() (out []identity.Login) {
	for i := range c.Issuers {
		if l := &c.Issuers[i].Login; l.ClientID != "" {
			out = append(out, identity.Login{ID: c.Issuers[i].ID, Client: l.Client(c.Issuers[i].URL)})
		}
	}
	return out
}
