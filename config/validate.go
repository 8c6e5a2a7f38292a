package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

const (
	// leastDeadline is the smallest accepted value of policies.deadline. With smaller values, every call would fail.
	leastDeadline = time.Millisecond
	// leastLog is the smallest accepted rotation size of a log, in bytes. A line has several hundred bytes.
	leastLog = 1024
	// maxKept is the maximum number of exchanges that can be kept in memory. An exchange takes a few kilobytes.
	maxKept = 100_000
	// minToken is the minimum length of an admin token in bytes.
	minToken = 16
)

// validate reports the faults of each section on its own.
func validate(c *settings.Config, demoKeys bool) error {
	var errs fault.Found
	for path, err := range map[string]error{
		"limits":               errors.Join(c.Limits.Validate(), redisstore.Config{Recovery: c.Limits.Recovery}.Validate()),
		"limits.anonymous":     c.Limits.Anonymous.Validate(),
		"balancers":            c.Balancers.Validate(),
		"connections":          c.Connections.Validate(),
		"policies":             c.Policies.Validate(),
		"decisions":            c.Decisions.Validate(),
		"decisions.shared":     c.Decisions.Shared.Validate(),
		"audit":                c.Audit.Validate(),
		"catalog":              c.Catalog.Validate(),
		"spend":                c.Spend.Validate(),
		"telemetry":            c.Telemetry.Validate(),
		"legacy":               c.Legacy.Validate(),
		"legacy.keyless.limit": c.Legacy.Keyless.Limit.Validate(),
		"v1":                   c.V1.Validate(),
		"graphql":              c.GraphQL.Validate(),
		"redis.prefix":         c.Redis.Prefix.Validate(),
		"overload":             c.Overload.Validate(),
		"timeouts":             c.Timeouts.Validate(),
		"platform.base_url":    baseURL(c.Platform.BaseURL, c.Platform.AllowInsecure),
	} {
		errs = append(errs, fault.At(path, err))
	}
	if p := c.Platform.Proxy; p.Resolved() {
		errs = append(errs, fault.At("platform.proxy", egress.CheckProxy(p.Reveal())))
	}
	errs.If(c.Platform.Connections < 0, "platform.connections", "must not be negative")
	if c.Instance != "" {
		errs = append(errs, fault.At("instance", ratelimit.CheckGateway(c.Instance)))
	}
	if c.Platform.RunURL != "" {
		errs = append(errs, fault.At("platform.run_url", baseURL(c.Platform.RunURL, c.Platform.AllowInsecure)))
	}
	for path, address := range map[string]string{"platform.lb_url": c.Platform.BalancedURL, "public_lb_url": c.PublicBalancedURL} {
		_, rest, templated := strings.Cut(address, "://{id}.")
		errs.If(address != "" && (!templated || strings.Contains(rest, "{")), path,
			"must have {id} as the first label of the host name, such as https://{id}.run.example")
	}
	if address := c.Platform.BalancedURL; address != "" {
		errs = append(errs, fault.At("platform.lb_url", baseURL(strings.Replace(address, "{id}", "id", 1), c.Platform.AllowInsecure)))
	}
	for path, address := range map[string]string{"public_url": c.PublicURL, "public_lb_url": c.PublicBalancedURL} {
		_, err := upstream.New(upstream.Config{BaseURL: strings.Replace(address, "{id}", "id", 1)}, nil)
		errs.If(address != "" && err != nil, path, "must be an http or https URL with only a scheme and host")
	}
	errs.If(c.PublicBalancedURL != "" && c.Platform.BalancedURL == "", "public_lb_url", "requires platform.lb_url")
	errs.If(c.Run.WebSockets < 0, "run.websockets", "must not be negative")
	errs.If(c.Run.Memory <= operation.MaxRead, "run.memory", "must be greater than the maximum size of a body, %d bytes", operation.MaxRead)
	errs = append(errs, validateListeners(c)...)
	errs = append(errs, validateLogs(c)...)
	// A client that connects to this listener with any caller's key receives the platform key of the organisation, because Envoy needs the
	// platform key to forward requests.
	errs.If(!loopback(c.Envoy.Listen) && c.Envoy.TLS.Certificate.IsZero(), "envoy.listen",
		"must be on loopback unless envoy.tls is set, because the server sends platform keys to its clients")
	errs.If(!loopback(c.Admin.Listen) && c.Admin.Token.IsZero() && len(c.Admin.Admins)+len(c.Admin.Issuers) == 0, "admin.token",
		"is required if the admin listener is not on loopback, unless admin.admins or admin.issuers is set")
	errs = append(errs, strictyaml.Each(c, func(a *settings.AdminAccount) error { return a.Validate() }))
	errs.If(c.Admin.Token.Resolved() && len(c.Admin.Token.Reveal()) < minToken, "admin.token",
		"must have at least %d characters; generate a token with openssl rand -hex 32", minToken)
	fault.Between(&errs, "decisions.keep", c.Decisions.Keep, 0, maxKept)
	errs.If(c.Limits.Recovery == 0, "limits.recovery", "must be at least %v", redisstore.MinRecovery)
	errs.If(!c.Redis.Embedded && c.Redis.URL.IsZero(), "redis",
		"must set url, or embedded: true for a single gateway whose data can be lost on restart")
	errs.If(c.Redis.Embedded && !c.Redis.URL.IsZero(), "redis", "must not set both url and embedded: true")
	errs.If(c.Policies.Deadline > 0 && c.Policies.Deadline < leastDeadline, "policies.deadline",
		"must be at least %s, got %s: no policy evaluation is faster", leastDeadline, c.Policies.Deadline)
	errs.If(len(c.Orgs) == 0 && c.OrgsFiles == "", "orgs", "must contain at least one organisation")
	errs = append(errs, fault.At("org_bounds", c.OrgBounds.Validate()))
	for i := range c.Orgs {
		if !c.Orgs[i].Reused {
			errs = append(errs, fault.At(fault.Index("orgs", i), validateOrg(&c.Orgs[i], demoKeys)))
		}
	}
	return errors.Join(errs...)
}

// validateListeners reports listener addresses that are invalid or conflict with each other.
func validateListeners(c *settings.Config) []error {
	var errs fault.Found
	type listener struct {
		path, host string
		port       int
	}
	var before []listener
	for _, l := range []struct{ path, address string }{{"listen", c.Listen}, {"admin.listen", c.Admin.Listen}, {"envoy.listen", c.Envoy.Listen}} {
		if l.address == "" && l.path == "envoy.listen" {
			continue // not used
		}
		host, port, err := net.SplitHostPort(l.address)
		if err != nil {
			errs.Add(l.path, "must have the form host:port")
			continue
		}
		a, err := net.ResolveTCPAddr("tcp", ":"+port) // without a host, no lookup is made
		if err != nil {
			errs.Add(l.path, "invalid port %q", port)
			continue
		}
		for _, other := range before {
			errs.If(a.Port != 0 && a.Port == other.port && overlap(host, other.host), l.path, "conflicts with the address of %s", other.path)
		}
		before = append(before, listener{l.path, host, a.Port})
	}
	return errs
}

// overlap reports whether two listeners with the same port conflict if their hosts are a and b. They conflict if the hosts are equal, or if
// one host is a wildcard address that includes the other. The IPv6 wildcard address includes all IPv4 addresses.
func overlap(a, b string) bool {
	covers := func(a, b string) bool {
		all, one := net.ParseIP(a), net.ParseIP(b)
		return a == "" || all.IsUnspecified() && (all.To4() == nil || one.To4() != nil)
	}
	a, b = strings.Replace(a, "localhost", "127.0.0.1", 1), strings.Replace(b, "localhost", "127.0.0.1", 1)
	return a == b || covers(a, b) || covers(b, a)
}

// mutual parses a certificate with its key and the certificate authorities of the clients.
func mutual(t *settings.MutualTLS) error {
	var err error
	if t.Pair, err = pair(&settings.TLS{Certificate: t.Certificate, Key: t.Key}); err != nil {
		return err
	}
	if t.CA.IsZero() != t.Certificate.IsZero() {
		return errors.New("must set certificate, key and ca (the certificate authority of the Envoys)")
	}
	if t.CA.Resolved() {
		t.Pool = x509.NewCertPool()
		if !t.Pool.AppendCertsFromPEM([]byte(t.CA.Reveal())) {
			return errors.New("ca contains no certificate")
		}
	}
	return nil
}

// pair parses a certificate with its key. It returns nil if no certificate is configured. It accepts an expired certificate, so that a
// configuration with such a certificate can still be changed.
func pair(t *settings.TLS) (*tls.Certificate, error) {
	switch {
	case t.Certificate.IsZero() && t.Key.IsZero():
		return nil, nil
	case t.Certificate.IsZero() || t.Key.IsZero():
		return nil, errors.New("must set both certificate and key")
	case !t.Certificate.Resolved() || !t.Key.Resolved():
		return nil, nil
	}
	return settings.KeyPair(t.Certificate, t.Key)
}

// baseURL checks the base URL of a server that receives keys. It returns an error if keys would be sent unencrypted.
func baseURL(address string, allowInsecure bool) error {
	if address == "" {
		return errors.New("is required: set the URL of the platform's REST API, such as https://api.platform.example")
	}
	if _, err := upstream.New(upstream.Config{BaseURL: address}, nil); err != nil {
		return errors.New("must be an http or https URL with only a scheme and host")
	}
	base, err := url.Parse(address)
	if err == nil {
		err = egress.CheckPort(base)
	}
	if err != nil || base.Scheme == "https" || loopbackHost(base.Hostname()) || allowInsecure {
		return err
	}
	return errors.New("must be https, because platform keys would be sent unencrypted; in a trusted network, set platform.allow_insecure: true")
}

func validateOrg(o *settings.Org, demoKeys bool) error {
	errs := fault.Found{
		fault.At("limits", o.Limit.Validate()), fault.At("budget", o.Budget.Validate()),
		fault.At("alerts", o.Alerts.Validate()), fault.At("over", o.Over.Validate()), fault.At("idle", o.Idle.Validate()),
		fault.At("prices", o.Prices.Validate()),
	}
	for i, t := range o.Teams {
		at := fault.Index("teams", i)
		errs = append(errs, fault.At(at+".limits", t.Limit.Validate()), fault.At(at+".budget", t.Budget.Validate()),
			fault.At(at+".over", t.Over.Validate()))
		errs.If(t.Weight < 0, at+".weight", "must not be negative")
	}
	for name, f := range map[string]ratelimit.Failure{"read": o.Failure.Read, "write": o.Failure.Write} {
		errs.If(f != "" && !f.Valid(), "failure."+name, "must be closed, local or open, got %q", f)
	}
	errs = append(errs, strictyaml.Each(o, func(b *settings.Brownout) error { return b.Validate() }))
	demo := make(map[identity.Digest]string)
	for _, key := range DemoKeys() {
		demo[identity.DigestOf(key)] = key
	}
	classes := make(map[string]bool)
	for i, c := range o.Classes {
		at := fault.Index("classes", i)
		errs = append(errs, fault.At(at+".limits", c.Limit.Validate()), fault.At(at+".id", ratelimit.CheckID(c.ID)))
		errs.If(classes[c.ID], at+".id", "class %q is already defined", c.ID)
		classes[c.ID] = true
		errs.If(c.Limit.Unlimited(), at+".limits", "must set at least one limit")
		fault.Between(&errs, at+".cost", c.Cost, 0, ratelimit.MaxCost)
		window, refuses := c.Limit.Refuses(c.Cost)
		errs.If(refuses, at+".cost", "%d exceeds the limit per %s, so no call would ever be admitted", c.Cost, window)
	}
	for name, s := range map[string]strictyaml.Secret{"credential": o.Credential, "run_credential": o.RunCredential} {
		errs.If(!isToken(s.Reveal()), name, "%s contains a space, a line break or another character that is not permitted in a key; remove it", s.Source())
	}
	for i, k := range o.Keys {
		for _, d := range k.Accepted() {
			name := demo[d.Digest]
			errs.If(name != "" && !demoKeys, fault.Index("keys", i)+".sha256", "is the published demo key %s, which anyone can use", name)
		}
	}
	return errors.Join(errs...)
}

// isToken reports whether a text can be sent as a key.
func isToken(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// loopback reports whether the host of an address is a loopback address. It returns true for malformed addresses, which are reported
// elsewhere.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err != nil || loopbackHost(host)
}

func loopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
