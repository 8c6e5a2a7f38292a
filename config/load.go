package config

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/connlimit"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
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
	return strictyaml.Locate(l.positions, located(l.ofOrgs(err)))
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
	f, ok := errors.AsType[*policies.LoadError](err)
	if !ok || f.File != "" {
		return err
	}
	i := slices.IndexFunc(l.File.Orgs, func(o Org) bool { return o.ID == f.Org })
	m := pathText.FindStringSubmatch(f.Message)
	if i < 0 || m == nil {
		return err
	}
	return strictyaml.Atf(strictyaml.Index("orgs", i)+"."+m[1], "%s", m[2])
}

// Load reads the file at path.
func Load(path string, src Sources) (*Loaded, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	l, err := Parse(path, data, src)
	if err == nil {
		l.Inputs.add(path, contentOf(data, nil))
	}
	return l, err
}

// Parse reads a configuration from memory. name is used in faults, and
// relative directories are taken from where it is. All faults found are
// joined in the error.
func Parse(name string, data []byte, src Sources) (*Loaded, error) {
	l := &Loaded{File: Default()}
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
				l.Inputs.add(dir, digestOf(dir))
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

// maxKept bounds the exchanges kept in memory; each takes a few kilobytes.
const maxKept = 100_000

// validate reports the faults of the file's own sections.
func (f *File) validate(demoKeys bool) error {
	errs := []error{
		strictyaml.At("limits", located(f.Limits.Config.Validate())),
		strictyaml.At("limits", located(redisstore.Config{Recovery: f.Limits.Recovery}.Validate())),
		strictyaml.At("limits.anonymous", located(f.Limits.Anonymous.Validate())),
		strictyaml.At("limits.fair_share", located(f.Limits.FairShare.Validate())),
		strictyaml.At("policies", located(f.Policies.Validate())),
		strictyaml.At("decisions", located(f.Decisions.Validate())),
		strictyaml.At("catalog", located(f.Catalog.Validate())),
		strictyaml.At("telemetry", located(f.Telemetry.Validate())),
		strictyaml.At("v1", located(f.V1.Validate())),
		strictyaml.At("graphql", located(f.GraphQL.Validate())),
		address("listen", f.Listen),
		address("admin.listen", f.Admin.Listen),
	}
	if f.Envoy.Listen != "" {
		errs = append(errs, address("envoy.listen", f.Envoy.Listen))
		// Whoever speaks ext_proc to this door and has any caller's key is told
		// the organisation's platform key, for Envoy to send.
		if !loopback(f.Envoy.Listen) {
			errs = append(errs, strictyaml.Atf("envoy.listen", "must be on loopback, beside Envoy: the door hands out platform keys and has no TLS"))
		}
	}
	if err := (&connlimit.Config{Total: f.Connections.Total, PerAddress: f.Connections.PerAddress}).Validate(); err != nil {
		errs = append(errs, strictyaml.At("connections", located(err)))
	}
	for i, p := range f.Limits.AnonymousExempt {
		if _, err := netip.ParsePrefix(p); err != nil {
			errs = append(errs, strictyaml.Atf(strictyaml.Index("limits.anonymous_exempt", i), "must be a prefix such as 10.0.0.5/32"))
		}
	}
	if !loopback(f.Admin.Listen) && f.Admin.Token.IsZero() {
		errs = append(errs, strictyaml.Atf("admin.token", "is required when the admin listener is not on loopback"))
	}
	for path, t := range map[string]TLS{"tls": f.TLS, "admin.tls": f.Admin.TLS} {
		_, err := t.pair()
		errs = append(errs, strictyaml.At(path, err))
	}
	errs = append(errs, checkToken("admin.token", f.Admin.Token), f.Platform.validate())
	if f.Decisions.Keep < 0 || f.Decisions.Keep > maxKept {
		errs = append(errs, strictyaml.Atf("decisions.keep", "must be between 0 and %d", maxKept))
	}
	if f.Limits.Recovery == 0 {
		errs = append(errs, strictyaml.Atf("limits.recovery", "must be at least %v, or negative to trust a new server at once", redisstore.MinRecovery))
	}
	if f.Redis.Embedded != f.Redis.URL.IsZero() {
		errs = append(errs, strictyaml.Atf("redis", "needs either url or embedded: true"))
	}
	errs = append(errs, strictyaml.At("redis.prefix", f.Redis.Prefix.Validate()))
	for name, d := range map[string]int64{
		"connect": int64(f.Timeouts.Connect), "response": int64(f.Timeouts.Response), "call": int64(f.Timeouts.Call),
		"body": int64(f.Timeouts.Body), "write": int64(f.Timeouts.Write), "drain": int64(f.Timeouts.Drain),
	} {
		if d <= 0 {
			errs = append(errs, strictyaml.Atf("timeouts."+name, "must be positive"))
		}
	}
	if len(f.Orgs) == 0 {
		errs = append(errs, strictyaml.Atf("orgs", "needs at least one organisation"))
	}
	for i := range f.Orgs {
		errs = append(errs, strictyaml.At(strictyaml.Index("orgs", i), f.Orgs[i].validate(demoKeys)))
	}
	return errors.Join(errs...)
}

// pair is the certificate with its key, nil without any. Faults of secrets that
// could not be read are found elsewhere. That a certificate has ended is none: the
// configuration must be changeable all the same.
func (t TLS) pair() (*tls.Certificate, error) {
	switch {
	case t.Certificate.IsZero() && t.Key.IsZero():
		return nil, nil
	case t.Certificate.IsZero() || t.Key.IsZero():
		return nil, errors.New("needs certificate and key, both")
	case !t.Certificate.Resolved() || !t.Key.Resolved():
		return nil, nil
	}
	pair, err := tls.X509KeyPair([]byte(t.Certificate.Reveal()), []byte(t.Key.Reveal()))
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "tls: ")) // tells no content
	}
	return &pair, nil
}

// validate refuses an address that keys would travel to in the clear.
func (p *Platform) validate() error {
	if _, err := upstream.New(upstream.Config{BaseURL: p.BaseURL}, nil); err != nil {
		return strictyaml.Atf("platform.base_url", "must be http or https with a host and nothing else")
	}
	base, err := url.Parse(p.BaseURL)
	if err != nil || base.Scheme == "https" || loopbackHost(base.Hostname()) || p.AllowInsecure {
		return err
	}
	return strictyaml.Atf("platform.base_url", "must be https: platform keys would travel unencrypted (platform.allow_insecure: true if the network is trusted)")
}

func (o *Org) validate(demoKeys bool) error {
	errs := []error{
		strictyaml.At("limits", located(o.Limits.Validate())),
		located(o.policies().Validate()),
		located(o.policies().Check(o.names())),
	}
	for i, t := range o.Teams {
		at := strictyaml.Index("teams", i)
		errs = append(errs, strictyaml.At(at+".limits", located(t.Limits.Validate())))
		if t.Weight < 0 {
			errs = append(errs, strictyaml.Atf(at+".weight", "must not be negative"))
		}
	}
	for name, failure := range map[string]ratelimit.Failure{"read": o.Failure.Read, "write": o.Failure.Write} {
		if failure != "" && !failure.Valid() {
			errs = append(errs, strictyaml.Atf("failure."+name, "must be closed, local or open, got %q", failure))
		}
	}
	for i, b := range o.Brownouts {
		errs = append(errs, strictyaml.At(strictyaml.Index("brownouts", i), located(b.Validate())))
	}
	classes := make(map[string]bool)
	for i, c := range o.Classes {
		at := strictyaml.Index("classes", i)
		errs = append(errs, strictyaml.At(at+".limits", located(c.Limits.Validate())), strictyaml.At(at+".id", ratelimit.CheckID(c.ID)))
		if classes[c.ID] {
			errs = append(errs, strictyaml.Atf(at+".id", "class %q is already defined", c.ID))
		}
		classes[c.ID] = true
		if c.Limits.Unlimited() {
			errs = append(errs, strictyaml.Atf(at+".limits", "limits nothing"))
		}
		if c.Cost < 0 || c.Cost > ratelimit.MaxCost {
			errs = append(errs, strictyaml.Atf(at+".cost", "must be between 0 and %d", ratelimit.MaxCost))
		}
	}
	for i, k := range o.Keys {
		at := strictyaml.Index("keys", i)
		errs = append(errs, strictyaml.At(at+".limits", located(k.Limits.Validate())))
		digest, err := identity.ParseDigest(k.SHA256)
		if err != nil {
			errs = append(errs, strictyaml.At(at+".sha256", err))
			continue
		}
		if name := demoKeyOf(digest); name != "" && !demoKeys {
			errs = append(errs, strictyaml.Atf(at+".sha256", "is the documented demo key %s, which anyone can use", name))
		}
	}
	return errors.Join(errs...)
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

func address(path, addr string) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return strictyaml.Atf(path, "must be host:port")
	}
	return nil
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // already a fault of its own
	}
	return loopbackHost(host)
}

func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// pathText is how packages that import nothing of ours write where a fault is.
var pathText = regexp.MustCompile(`^([a-z_][a-z0-9_]*(?:\[\d+\])*(?:\.[a-zA-Z_][a-zA-Z0-9_]*(?:\[\d+\])*)*): ((?s).*)$`)

// located reads the path that a fault's text begins with, so that it can be
// placed in the file.
func located(err error) error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range many.Unwrap() {
			errs = append(errs, located(e))
		}
		return errors.Join(errs...)
	}
	if _, ok := errors.AsType[*strictyaml.PathError](err); ok {
		return err
	}
	if _, ok := err.(interface{ Path() string }); ok {
		return err
	}
	if m := pathText.FindStringSubmatch(err.Error()); m != nil {
		return &strictyaml.PathError{Path: m[1], Err: errors.New(m[2])}
	}
	return err
}
