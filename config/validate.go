package config

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/connlimit"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// maxKept bounds the exchanges kept in memory; each takes a few kilobytes.
const maxKept = 100_000

// validate reports the faults of the file's own sections.
func (f *File) validate(demoKeys bool) error {
	errs := []error{
		fault.At("limits", f.Limits.Config.Validate()),
		fault.At("limits", redisstore.Config{Recovery: f.Limits.Recovery}.Validate()),
		fault.At("limits.anonymous", f.Limits.Anonymous.Validate()),
		fault.At("limits.fair_share", f.Limits.FairShare.Validate()),
		fault.At("policies", f.Policies.Validate()),
		fault.At("decisions", f.Decisions.Validate()),
		fault.At("catalog", f.Catalog.Validate()),
		fault.At("telemetry", f.Telemetry.Validate()),
		fault.At("v1", f.V1.Validate()),
		fault.At("graphql", f.GraphQL.Validate()),
		address("listen", f.Listen),
		address("admin.listen", f.Admin.Listen),
	}
	if f.Envoy.Listen != "" {
		errs = append(errs, address("envoy.listen", f.Envoy.Listen))
		// Whoever speaks ext_proc to this door and has any caller's key is told
		// the organisation's platform key, for Envoy to send.
		if !loopback(f.Envoy.Listen) {
			errs = append(errs, fault.Errorf("envoy.listen", "must be on loopback, beside Envoy: the door hands out platform keys and has no TLS"))
		}
	}
	if err := (&connlimit.Config{Total: f.Connections.Total, PerAddress: f.Connections.PerAddress}).Validate(); err != nil {
		errs = append(errs, fault.At("connections", err))
	}
	for i, p := range f.Limits.AnonymousExempt {
		if _, err := netip.ParsePrefix(p); err != nil {
			errs = append(errs, fault.Errorf(fault.Index("limits.anonymous_exempt", i), "must be a prefix such as 10.0.0.5/32"))
		}
	}
	if !loopback(f.Admin.Listen) && f.Admin.Token.IsZero() {
		errs = append(errs, fault.Errorf("admin.token", "is required when the admin listener is not on loopback"))
	}
	for path, t := range map[string]TLS{"tls": f.TLS, "admin.tls": f.Admin.TLS} {
		_, err := t.pair()
		errs = append(errs, fault.At(path, err))
	}
	errs = append(errs, checkToken("admin.token", f.Admin.Token), f.Platform.validate())
	if f.Decisions.Keep < 0 || f.Decisions.Keep > maxKept {
		errs = append(errs, fault.Errorf("decisions.keep", "must be between 0 and %d", maxKept))
	}
	if f.Limits.Recovery == 0 {
		errs = append(errs, fault.Errorf("limits.recovery", "must be at least %v, or negative to trust a new server at once", redisstore.MinRecovery))
	}
	if f.Redis.Embedded != f.Redis.URL.IsZero() {
		errs = append(errs, fault.Errorf("redis", "needs either url or embedded: true"))
	}
	errs = append(errs, fault.At("redis.prefix", f.Redis.Prefix.Validate()))
	for name, d := range map[string]int64{
		"connect": int64(f.Timeouts.Connect), "response": int64(f.Timeouts.Response), "call": int64(f.Timeouts.Call),
		"body": int64(f.Timeouts.Body), "write": int64(f.Timeouts.Write), "drain": int64(f.Timeouts.Drain),
	} {
		if d <= 0 {
			errs = append(errs, fault.Errorf("timeouts."+name, "must be positive"))
		}
	}
	if len(f.Orgs) == 0 {
		errs = append(errs, fault.Errorf("orgs", "needs at least one organisation"))
	}
	for i := range f.Orgs {
		errs = append(errs, fault.At(fault.Index("orgs", i), f.Orgs[i].validate(demoKeys)))
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
		return fault.Errorf("platform.base_url", "must be http or https with a host and nothing else")
	}
	base, err := url.Parse(p.BaseURL)
	if err != nil || base.Scheme == "https" || loopbackHost(base.Hostname()) || p.AllowInsecure {
		return err
	}
	return fault.Errorf("platform.base_url", "must be https: platform keys would travel unencrypted (platform.allow_insecure: true if the network is trusted)")
}

func (o *Org) validate(demoKeys bool) error {
	errs := []error{
		fault.At("limits", o.Limits.Validate()),
		o.policies().Validate(),
		o.policies().Check(o.names()),
	}
	for i, t := range o.Teams {
		at := fault.Index("teams", i)
		errs = append(errs, fault.At(at+".limits", t.Limits.Validate()))
		if t.Weight < 0 {
			errs = append(errs, fault.Errorf(at+".weight", "must not be negative"))
		}
	}
	for name, failure := range map[string]ratelimit.Failure{"read": o.Failure.Read, "write": o.Failure.Write} {
		if failure != "" && !failure.Valid() {
			errs = append(errs, fault.Errorf("failure."+name, "must be closed, local or open, got %q", failure))
		}
	}
	for i, b := range o.Brownouts {
		errs = append(errs, fault.At(fault.Index("brownouts", i), b.Validate()))
	}
	classes := make(map[string]bool)
	for i, c := range o.Classes {
		at := fault.Index("classes", i)
		errs = append(errs, fault.At(at+".limits", c.Limits.Validate()), fault.At(at+".id", ratelimit.CheckID(c.ID)))
		if classes[c.ID] {
			errs = append(errs, fault.Errorf(at+".id", "class %q is already defined", c.ID))
		}
		classes[c.ID] = true
		if c.Limits.Unlimited() {
			errs = append(errs, fault.Errorf(at+".limits", "limits nothing"))
		}
		if c.Cost < 0 || c.Cost > ratelimit.MaxCost {
			errs = append(errs, fault.Errorf(at+".cost", "must be between 0 and %d", ratelimit.MaxCost))
		} else if window, ok := c.Limits.Refuses(c.Cost); ok {
			errs = append(errs, fault.Errorf(at+".cost", "%d is more than the whole %s may hold, so that no call would ever pass", c.Cost, window))
		}
	}
	for i, k := range o.Keys {
		at := fault.Index("keys", i)
		errs = append(errs, fault.At(at+".limits", k.Limits.Validate()))
		digest, err := identity.ParseDigest(k.SHA256)
		if err != nil {
			errs = append(errs, fault.At(at+".sha256", err))
			continue
		}
		if name := demoKeyOf(digest); name != "" && !demoKeys {
			errs = append(errs, fault.Errorf(at+".sha256", "is the documented demo key %s, which anyone can use", name))
		}
	}
	return errors.Join(errs...)
}

func address(path, addr string) error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return fault.Errorf(path, "must be host:port")
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
