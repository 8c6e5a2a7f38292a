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

// Keys keeps the keys made at run time, and compiles who may call.
type Keys struct {
	// Tokens has the keys of issuers. Which tokens were revoked is read together with the keys.
	Tokens *Tokens

	deps    Deps
	keyring *keyring
	seen    *identity.UsedKeys
}

// Deps are the parts that keys need. All are required.
type Deps struct {
	Redis  store.Client
	Logger *slog.Logger
	// API and Runs describe the v2 API and the run interface.
	API, Runs *schema.API
	*view.Current
	// Streams are checked again when other tokens are revoked.
	Streams *filter.Streams
	// Callers returns the callers in force.
	Callers func() *Callers
	// Apply puts the callers in force that change makes of the callers in force.
	Apply func(change func(*Callers) (*Callers, error))
}

// New returns keys that are kept below a prefix, with those of issuers.
func New(prefix settings.Prefix, deps Deps) *Keys {
	return &Keys{
		deps: deps, keyring: newKeyring(prefix, &deps), seen: identity.NewUsedKeys(),
		Tokens: NewTokens(prefix, deps),
	}
}

// State returns when the store was last read, zero for never, and how the last attempt ended.
func (s *Keys) State() (good time.Time, err error) {
	good, err = s.keyring.State()
	if err == nil {
		_, err = s.Tokens.known.State()
	}
	return good, err
}

// org is an organisation of the callers in force, nil for none.
func (s *Keys) org(id string) *settings.Org { return s.deps.Org(id) }

func orgsOf(cfg *settings.Config) []string {
	ids := make([]string, len(cfg.Orgs))
	for i, o := range cfg.Orgs {
		ids[i] = o.ID
	}
	return ids
}

// authorities compiles the signers of callers' certificates.
func authoritiesOf(c *settings.Config) (*identity.Authorities, error) {
	list := make([]identity.Authority, len(c.Certificates.Authorities))
	for i, a := range c.Certificates.Authorities {
		list[i] = a.Authority
	}
	return identity.NewAuthorities(identity.Certificates{Authorities: list, Required: c.Certificates.Required}, c.Teams())
}

// issuers compiles the issuers of a configuration.
func (s *Keys) issuers(cfg *settings.Config) *identity.Issuers {
	list := make([]identity.Issuer, len(cfg.Issuers))
	for i := range cfg.Issuers {
		list[i] = cfg.Issuers[i].Issuer
	}
	return identity.NewIssuers(list, s.Tokens.Issuers(), cfg.Teams())
}

// directory returns that of the keys, issuers and authorities of a file.
func (s *Keys) directory(cfg *settings.Config) (*identity.Directory, error) {
	authorities, err := authoritiesOf(cfg)
	if err != nil {
		return nil, err
	}
	directory, err := cfg.Directory(s.issuers(cfg), authorities)
	if err != nil {
		return nil, err
	}
	return directory.WithUsedKeys(s.seen), nil
}
