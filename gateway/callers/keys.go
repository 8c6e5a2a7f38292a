package callers

import (
	"log/slog"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
)

// Keys stores the keys created at run time and combines them with a configuration into Callers.
type Keys struct {
	// Tokens manages revoked tokens and the keys of token issuers. Revocations are read together with the keys.
	Tokens *Tokens

	deps    Deps
	keyring *keyring
	seen    *identity.UsedKeys
}

// Deps are the dependencies of Keys. All are required.
type Deps struct {
	Redis  store.Client
	Logger *slog.Logger
	// API describes the platform's v2 API, and Runs its run interface (see package filter).
	API, Runs *schema.API
	*view.Current
	// Streams are rechecked after a change of the revoked tokens.
	Streams *filter.Streams
	// Callers returns the current callers.
	Callers func() *Callers
	// Apply replaces the current callers with the result of change.
	Apply func(change func(*Callers) (*Callers, error))
}

// New returns a Keys whose Redis keys begin with prefix.
func New(prefix settings.Prefix, deps Deps) *Keys {
	return &Keys{
		deps: deps, keyring: newKeyring(prefix, &deps), seen: identity.NewUsedKeys(),
		Tokens: newTokens(prefix, deps),
	}
}

// State returns the time of the last successful read of the store, or zero, and the error of the last read.
func (s *Keys) State() (good time.Time, err error) {
	good, err = s.keyring.State()
	if err == nil {
		_, err = s.Tokens.known.State()
	}
	return good, err
}

// org returns an organisation of the current callers, or nil.
func (s *Keys) org(id string) *settings.Org { return s.deps.Org(id) }

// authoritiesOf compiles the certificate authorities of a configuration.
func authoritiesOf(c *settings.Config) *identity.Authorities {
	list := make([]identity.Authority, len(c.Certificates.Authorities))
	for i, a := range c.Certificates.Authorities {
		list[i] = a.Authority
	}
	return identity.NewAuthorities(identity.Certificates{Authorities: list, Required: c.Certificates.Required}, c.Teams())
}

// issuers compiles the token issuers of a configuration.
func (s *Keys) issuers(cfg *settings.Config) *identity.Issuers {
	list := make([]identity.Issuer, len(cfg.Issuers))
	for i := range cfg.Issuers {
		list[i] = cfg.Issuers[i].Issuer
	}
	return identity.NewIssuers(list, s.Tokens.Issuers(), cfg.Teams())
}

// directory returns the directory of the keys, issuers and authorities of a configuration.
func (s *Keys) directory(cfg *settings.Config) (*identity.Directory, error) {
	directory, err := cfg.Directory(s.issuers(cfg), authoritiesOf(cfg))
	if err != nil {
		return nil, err
	}
	return directory.WithUsedKeys(s.seen), nil
}
