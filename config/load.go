package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/connlimit"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/load"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Sources is where a configuration's secrets come from.
type Sources struct {
	// Env looks up a variable; nil is the process environment.
	Env func(string) (string, bool)
	// ReadFile reads a file a secret refers to; nil is os.ReadFile.
	ReadFile func(string) ([]byte, error)
	// DemoKeys admits the documented keys of the demo. Only the demo may.
	DemoKeys bool
}

// Loaded is a configuration that was read, with what is needed to place later
// faults.
type Loaded struct {
	// File is the configuration as written, secrets resolved, Inputs what it was read
	// from.
	File   File
	Inputs Inputs
	// Gateway is what the gateway is made from.
	Gateway   gateway.Config
	positions *strictyaml.Positions
}

// Locate gives faults found later (by gateway.New) their place in the file.
func (l *Loaded) Locate(err error) error {
	return strictyaml.Locate(l.positions, l.ofOrgs(err))
}

// ofOrgs puts an organisation's place on faults of its section that policies
// found when they were compiled; their paths begin there.
func (l *Loaded) ofOrgs(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range many.Unwrap() {
			errs = append(errs, l.ofOrgs(e))
		}
		return errors.Join(errs...)
	}
	f, ok := errors.AsType[*load.Error](err)
	i := -1
	if ok {
		i = slices.IndexFunc(l.File.Orgs, func(o Org) bool { return o.ID == f.Org })
	}
	if i < 0 || f.Path == "" {
		return err
	}
	return fault.Errorf(fault.Index("orgs", i)+"."+f.Path, "%s", f.Message)
}

// Load reads the file at path.
func Load(path string, src Sources) (*Loaded, error) {
	var in Inputs
	data, err := in.reading(os.ReadFile)(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, data, src, in)
}

// Parse reads a configuration from memory. name is used in faults, and
// relative directories are taken from where it is. All faults found are
// joined in the error.
func Parse(name string, data []byte, src Sources) (*Loaded, error) {
	return parse(name, data, src, Inputs{})
}

// parse is Parse; in is what was read so far.
func parse(name string, data []byte, src Sources, in Inputs) (*Loaded, error) {
	l := &Loaded{File: Default(), Inputs: in}
	var err error
	l.positions, err = strictyaml.Survey(name, data, &l.File)
	form, _ := errors.AsType[strictyaml.Errors](err)
	if src.Env == nil {
		src.Env = os.LookupEnv
	}
	if src.ReadFile == nil {
		src.ReadFile = os.ReadFile
	}
	faults := errors.Join(strictyaml.ResolveSecrets(&l.File, src.Env, l.Inputs.reading(src.ReadFile)), l.File.validate(src.DemoKeys))
	sum := sha256.Sum256(data)
	l.Gateway = l.File.gateway(filepath.Dir(name), hex.EncodeToString(sum[:6]))
	later := errors.Join(faults, l.Gateway.Validate())
	if form == nil && later == nil {
		for _, o := range l.Gateway.Orgs {
			if dir := o.Policies.Directory; dir != "" {
				l.Inputs.directory(dir)
			}
		}
		return l, nil
	}
	return nil, l.merge(form, later)
}

// merge puts faults found after decoding behind those of form, leaving out
// what may only follow from them.
func (l *Loaded) merge(form strictyaml.Errors, later error) error {
	all := slices.Clone(form)
	found, _ := errors.AsType[strictyaml.Errors](l.Locate(later))
	for _, f := range found {
		if !form.Covers(f.Path) {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b strictyaml.Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return all
}

// gateway turns the file into what the gateway is made from.
func (f *File) gateway(dir, revision string) gateway.Config {
	c := gateway.Config{
		Listen: f.Listen, AdminListen: f.Admin.Listen, EnvoyListen: f.Envoy.Listen,
		AdminToken: credential(f.Admin.Token),
		Platform: upstream.Config{
			BaseURL: f.Platform.BaseURL, Timeout: f.Timeouts.Response, ConnectTimeout: f.Timeouts.Connect, MaxIdle: 256,
		},
		Notice: f.Timeouts.Notice, Drain: f.Timeouts.Drain, BodyTimeout: f.Timeouts.Body, WriteTimeout: f.Timeouts.Write, CallDeadline: f.Timeouts.Call,
		Limits: f.Limits.Config, Prefix: f.Redis.Prefix, Recovery: f.Limits.Recovery, Anonymous: f.Limits.Anonymous, FairShare: f.Limits.FairShare, Policies: f.Policies, Catalog: f.Catalog, Telemetry: f.Telemetry,
		V1: f.V1, GraphQL: f.GraphQL, AnonymousCatalog: f.AnonymousCatalog, Revision: revision,
	}
	c.Certificates.Data, _ = f.TLS.pair() // validate has told the faults
	c.Certificates.Admin, _ = f.Admin.TLS.pair()
	if file := f.Decisions.File; file != nil && !filepath.IsAbs(file.Path) {
		file.Path = filepath.Join(dir, file.Path)
	}
	c.Decisions, c.KeepDecisions = f.Decisions.Config, f.Decisions.Keep
	for _, p := range f.Limits.AnonymousExempt {
		if prefix, err := netip.ParsePrefix(p); err == nil { // validate has named the others
			c.AnonymousExempt = append(c.AnonymousExempt, prefix.Masked())
		}
	}
	c.Connections = connlimit.Config{Total: f.Connections.Total, PerAddress: f.Connections.PerAddress, Exempt: c.AnonymousExempt}
	for _, o := range f.Orgs {
		org := gateway.Org{
			ID: o.ID, Credential: credential(o.Credential), Limit: o.Limits, Failure: o.Failure.byClass(), Classes: o.classes(), Brownouts: o.Brownouts,
			Policies: o.policies(),
		}
		if o.Rego != "" && !filepath.IsAbs(o.Rego) {
			org.Policies.Directory = filepath.Join(dir, o.Rego)
		}
		for _, t := range o.Teams {
			org.Teams = append(org.Teams, gateway.Team{ID: t.ID, Limit: t.Limits, Weight: t.Weight})
		}
		for _, k := range o.Keys {
			digest, err := identity.ParseDigest(k.SHA256)
			if err != nil {
				continue // validate has said so, with its place
			}
			org.Keys = append(org.Keys, gateway.Key{
				ID: k.ID, Team: k.Team, Digest: digest, Roles: k.Roles, Limit: k.Limits, Exempt: k.Exempt,
			})
		}
		c.Orgs = append(c.Orgs, org)
	}
	return c
}

// alwaysOn is the policy in force for every organisation that does not list it.
const alwaysOn = "account_changes"

func (o *Org) policies() policies.Config {
	entries := o.Policies
	if !slices.ContainsFunc(entries, func(e policies.Entry) bool { return e.Policy == alwaysOn }) {
		entries = append(slices.Clip(entries), policies.Entry{Policy: alwaysOn}) // last, so that the places of faults stay
	}
	return policies.Config{Policies: entries, Directory: o.Rego, Bundle: o.Bundle, Exceptions: o.Exceptions}
}

// names are what its policies may refer to.
func (o *Org) names() policies.Names {
	n := policies.Names{Roles: identity.Role("").Values()}
	for _, t := range o.Teams {
		n.Teams = append(n.Teams, t.ID)
	}
	for _, k := range o.Keys {
		n.Keys = append(n.Keys, k.ID)
	}
	return n
}

// byClass returns the overrides there are, nil without any.
func (f Failure) byClass() map[ratelimit.Class]ratelimit.Failure {
	m := make(map[ratelimit.Class]ratelimit.Failure, 2)
	if f.Read != "" {
		m[ratelimit.ClassRead] = f.Read
	}
	if f.Write != "" {
		m[ratelimit.ClassWrite] = f.Write
	}
	return m
}

func (o *Org) classes() []gateway.Class {
	var out []gateway.Class
	for _, c := range o.Classes {
		kind := ratelimit.ScopeKind(c.Per)
		if kind == "" {
			kind = ratelimit.KindKey
		}
		out = append(out, gateway.Class{
			Class: filter.Class{ID: c.ID, Per: kind, Cost: c.Cost, Limit: c.Limits}, Operations: c.Operations,
		})
	}
	return out
}

func credential(s strictyaml.Secret) upstream.Credential {
	if !s.Resolved() {
		return upstream.Credential{}
	}
	return upstream.NewCredential(s.Reveal())
}
