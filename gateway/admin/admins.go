package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// scopeKey is the context key of the principal.
type scopeKey struct{}

// asking returns the principal of a request that passed the guard.
func asking(r *http.Request) adminapi.Principal {
	s, _ := r.Context().Value(scopeKey{}).(adminapi.Principal)
	return s
}

func attach(r *http.Request, s adminapi.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), scopeKey{}, s))
}

// Directory looks up admins by their tokens. It is immutable and safe for concurrent use.
type Directory struct {
	byDigest map[identity.Digest]entry
	issuers  map[string]*settings.AdminIssuer // by URL
	verifier *identity.Verifier               // of their tokens
	orgs     []adminapi.Tenant
}

// entry is an admin with the expiry of the token; zero means never.
type entry struct {
	admin   adminapi.Principal
	expires time.Time
}

// NewDirectory returns a Directory of the given accounts. It also contains the shared token unless the token is empty. Names and tokens
// must be unique.
func NewDirectory(token string, accounts []settings.AdminAccount) (*Directory, error) {
	d := &Directory{byDigest: make(map[identity.Digest]entry, len(accounts)+1)}
	names := make(map[string]bool, len(accounts))
	if token != "" {
		d.byDigest[identity.DigestOf(token)] = entry{admin: adminapi.Principal{
			Name:  adminapi.SharedAdmin,
			Roles: []adminapi.Role{adminapi.Admin}, Anonymous: true,
		}}
	}
	for i, a := range accounts {
		if names[a.Name] {
			return nil, fault.Errorf(fault.Index("admins", i)+".name", "admin %q is already defined", a.Name)
		}
		names[a.Name] = true
		if first, ok := d.byDigest[a.Digest]; ok {
			return nil, fault.Errorf(fault.Index("admins", i)+".sha256", "is also the token of %s", first.admin.Name)
		}
		d.byDigest[a.Digest] = entry{adminapi.Principal{Name: a.Name, Org: a.Org, Roles: a.Roles}, a.Expires}
	}
	return d, nil
}

// WithOrgs returns a Directory whose admins can access the given organisations, unless they are bound to one
// organisation.
func (d *Directory) WithOrgs(orgs []adminapi.Tenant) *Directory {
	all := *d
	all.orgs = orgs
	return &all
}

// IsOpen reports whether the listener requires no token because none is configured.
func (d *Directory) IsOpen() bool { return len(d.byDigest)+len(d.issuers) == 0 }

// HasToken reports whether digest is the digest of an admin token.
func (d *Directory) HasToken(digest identity.Digest) bool {
	_, ok := d.byDigest[digest]
	return ok
}

// errUnknown is the error for a token that belongs to no admin.
var errUnknown = errors.New("an admin token is required")

// Find returns the admin that a token identifies at the time now. It returns identity.ErrIssuerUnavailable if the token cannot be checked,
// errNoRole or errNoName if the holder of the token is not an admin, and another error if the token is invalid. Tokens are looked up by
// digest, so the time taken does not reveal how similar a guess is.
func (d *Directory) Find(ctx context.Context, token string, now time.Time) (adminapi.Principal, error) {
	if len(d.issuers) > 0 && identity.IsToken(token) {
		return d.issued(ctx, token, now)
	}
	e, ok := d.byDigest[identity.DigestOf(token)]
	if !ok || !e.expires.IsZero() && !now.Before(e.expires) {
		return adminapi.Principal{}, errUnknown
	}
	return e.admin, nil
}

// openAdmin returns the principal used if no token is required.
func openAdmin() adminapi.Principal {
	return adminapi.Principal{Name: adminapi.OpenAdmin, Roles: []adminapi.Role{adminapi.Admin}, Anonymous: true}
}
