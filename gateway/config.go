package gateway

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/connlimit"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/translate/brownout"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// Config is everything a Gateway is made from: data only. Package config reads
// it from a file.
type Config struct {
	// Listen, AdminListen and EnvoyListen are addresses; an empty EnvoyListen
	// opens no Envoy door. A change takes a restart.
	Listen, AdminListen, EnvoyListen string
	// Certificates are those of the listeners.
	Certificates Certificates
	// AdminToken protects the admin listener beyond its probes; zero leaves it
	// open, which is for loopback only.
	AdminToken upstream.Credential
	Platform   upstream.Config
	// Connections bounds the connections of the data listener; a change takes a
	// restart.
	Connections connlimit.Config
	// Drain bounds how long requests under way may take to finish at the end,
	// BodyTimeout how long a caller may take to send a body, CallDeadline how
	// long a changing call to the platform may take.
	Drain, BodyTimeout, CallDeadline time.Duration
	// Notice is how long the doors stay open after readiness has failed.
	Notice time.Duration
	// WriteTimeout bounds how long a caller may take to receive one part of an
	// answer. It, Drain and BodyTimeout take a restart.
	WriteTimeout time.Duration

	// Prefix begins all keys in the store; empty is DefaultPrefix. It and Recovery,
	// see redisstore.Config, take a restart.
	Prefix   Prefix
	Recovery time.Duration
	// Limits, Anonymous and FairShare take a restart; the quotas, which are the
	// organisations', do not.
	Limits    ratelimit.Config
	Anonymous ratelimit.AddressConfig
	// AnonymousExempt lists the addresses Anonymous does not slow down.
	AnonymousExempt []netip.Prefix
	FairShare       ratelimit.UpstreamConfig
	Policies        policies.Limits
	// Decisions says where decisions are logged, KeepDecisions how many
	// exchanges are kept in memory to be explained; both take a restart.
	Decisions     decisionlog.Config
	KeepDecisions int
	Catalog       catalog.Config
	Telemetry     telemetry.Config
	V1            v1.Config
	GraphQL       graphql.Config
	Orgs          []Org
	// AnonymousCatalog is the id of the organisation whose credential answers
	// the catalog questions of GraphQL callers without a key; empty for none.
	AnonymousCatalog string
	// Revision names this configuration in events and on the admin listener.
	Revision string
}

// Certificates are what the listeners speak TLS with; a listener without one does
// not. Whether it does takes a restart, another certificate does not.
type Certificates struct {
	Data, Admin *tls.Certificate
}

// Org is one organisation.
type Org struct {
	ID string
	// Credential is its platform key.
	Credential upstream.Credential
	// Limit is what all its callers share; the zero value does not limit.
	Limit ratelimit.Limit
	// Failure overrides, for a class of call, what happens to its callers while
	// the store is away.
	Failure map[ratelimit.Class]ratelimit.Failure
	// Classes are groups of operations with quotas of their own.
	Classes []Class
	// Brownouts are the windows in which its legacy calls are refused.
	Brownouts []brownout.Config
	Policies  policies.Config
	Teams     []Team
	Keys      []Key
}

// Class is a group of v2 operations with quotas of their own.
type Class struct {
	filter.Class
	Operations []string
}

// Team is a part of an organisation.
type Team struct {
	ID    string
	Limit ratelimit.Limit
	// Weight is its share of the platform account when that runs low.
	Weight int64
}

// Key is one key of a caller.
type Key struct {
	ID string
	// Team is the id of a team, empty for none.
	Team   string
	Digest identity.Digest
	Roles  []identity.Role
	Limit  ratelimit.Limit
	Exempt bool
}

// directory builds the look-up of callers.
func (c *Config) directory() (*identity.Directory, error) {
	var entries []identity.Entry
	for _, o := range c.Orgs {
		for _, k := range o.Keys {
			entries = append(entries, identity.Entry{Digest: k.Digest, Caller: identity.Caller{
				Org: o.ID, Team: k.Team, Key: k.ID, Roles: k.Roles, Exempt: k.Exempt,
			}})
		}
	}
	return identity.NewDirectory(entries)
}

// credentials lists the platform keys by organisation.
func (c *Config) credentials() map[string]upstream.Credential {
	m := make(map[string]upstream.Credential, len(c.Orgs))
	for _, o := range c.Orgs {
		if !o.Credential.IsZero() {
			m[o.ID] = o.Credential
		}
	}
	return m
}

// Validate reports what cannot be seen in one section alone. Paths are those
// of the file.
func (c *Config) Validate() error {
	var errs []error
	orgs := make(map[string]bool)
	for i, o := range c.Orgs {
		at := fault.Index("orgs", i)
		if orgs[o.ID] {
			errs = append(errs, fault.Errorf(at+".id", "organisation %q is already defined", o.ID))
		}
		orgs[o.ID] = true
		errs = append(errs, o.validate(at)...)
	}
	if c.AnonymousCatalog != "" && !orgs[c.AnonymousCatalog] {
		errs = append(errs, fault.Errorf("anonymous_catalog", "no organisation %q is defined", c.AnonymousCatalog))
	}
	if _, err := c.directory(); err != nil {
		errs = append(errs, fault.At("orgs", err))
	}
	return errors.Join(errs...)
}

func (o *Org) validate(at string) []error {
	var errs []error
	check := func(path, id string) {
		if err := ratelimit.CheckID(id); err != nil {
			errs = append(errs, fault.At(path, err))
		}
	}
	check(at+".id", o.ID)
	teams := make(map[string]bool)
	for i, t := range o.Teams {
		path := fault.Index(at+".teams", i) + ".id"
		check(path, t.ID)
		if teams[t.ID] {
			errs = append(errs, fault.Errorf(path, "team %q is already defined", t.ID))
		}
		teams[t.ID] = true
	}
	keys := make(map[string]bool)
	for i, k := range o.Keys {
		path := fault.Index(at+".keys", i)
		check(path+".id", k.ID)
		if keys[k.ID] {
			errs = append(errs, fault.Errorf(path+".id", "key %q is already defined", k.ID))
		}
		keys[k.ID] = true
		if k.Team != "" && !teams[k.Team] {
			errs = append(errs, fault.Errorf(path+".team", "organisation %q has no team %q", o.ID, k.Team))
		}
	}
	return errs
}
