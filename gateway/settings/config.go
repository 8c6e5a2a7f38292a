package settings

import (
	"cmp"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/overload"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// Config is the complete configuration of a gateway. Package config decodes the file into it, starting from [Default].
//
// The tags describe each setting: doc is its description, unit the unit of a number, and reload says whether a new value takes effect when
// the configuration is reloaded ("live") or only after a restart ("restart"). A reload tag also applies to the settings below it.
type Config struct {
	Listen    string `yaml:"listen" doc:"address of the data listener, which serves callers" reload:"restart"`
	PublicURL string `yaml:"public_url" doc:"URL of this gateway for callers, scheme and host only; endpoint records contain it in place of the platform's run interface" reload:"live"`

	Contact string `yaml:"contact" doc:"contact for help with refusals, such as '#gpu-platform' or an address; every refusal contains it and, if public_url and console are set, a link to the decision. If empty, refusals contain neither" reload:"live"`

	PublicBalancedURL string `yaml:"public_lb_url" doc:"URL with {id} for the endpoint ID, at which callers reach load-balanced endpoints by host name: https://{id}.lb.example; if empty, they are reachable only below public_url" reload:"live"`

	Instance string `yaml:"instance" doc:"unique name of this gateway among those that share the store; if empty, the host name with a random suffix" reload:"restart"`

	Console bool `yaml:"console" doc:"serve My team, the console for callers and team leads, at /tollgate/ui of the data listener; beyond loopback it requires tls, or balancers with forwarded_hops that terminate TLS" reload:"restart"`

	TLS      TLS      `yaml:"tls" doc:"TLS of the data listener; without it, only a proxy on the same host or a trusted network should be able to reach the listener" reload:"restart"`
	Admin    Admin    `yaml:"admin" doc:"listener for operators"`
	Envoy    Envoy    `yaml:"envoy" doc:"connection to Envoy proxies"`
	Platform Platform `yaml:"platform" doc:"platform that calls are forwarded to" reload:"live"`
	Redis    Redis    `yaml:"redis" doc:"Redis store shared by all gateways" reload:"restart"`
	Timeouts Timeouts `yaml:"timeouts" doc:"time limits"`
	Run      Run      `yaml:"run" doc:"run interface, which is enabled by platform.run_url"`

	Balancers   Balancers   `yaml:"balancers" doc:"load balancers in front of the data listener whose forwarded client addresses are trusted" reload:"restart"`
	Connections Connections `yaml:"connections" doc:"limits on connections" reload:"restart"`

	Overload  overload.Config     `yaml:"overload" doc:"limits on concurrent calls and work; see operations.md" reload:"restart"`
	Limits    Limits              `yaml:"limits" doc:"how calls are counted; the rate limits themselves are set for organisations" reload:"restart"`
	Policies  policyconfig.Limits `yaml:"policies" doc:"resource limits of policy evaluations" reload:"live"`
	Decisions Decisions           `yaml:"decisions" doc:"where decisions are logged, and how long they are stored" reload:"restart"`
	Audit     Audit               `yaml:"audit" doc:"audit log of changes" reload:"restart"`
	Spend     ledger.Config       `yaml:"spend" doc:"spending ledger; the budgets themselves are set for organisations" reload:"restart"`
	Catalog   catalog.Config      `yaml:"catalog" doc:"price lists" reload:"restart"`
	Telemetry Telemetry           `yaml:"telemetry" doc:"traces, metrics and logs"`
	Log       Log                 `yaml:"log" doc:"log on standard error" reload:"restart"`
	Legacy    Legacy              `yaml:"legacy" doc:"settings of both retired interfaces, v1 and GraphQL" reload:"live"`
	V1        V1                  `yaml:"v1" doc:"settings of the v1 interface" reload:"live"`
	GraphQL   GraphQL             `yaml:"graphql" doc:"settings of the GraphQL interface" reload:"live"`

	Issuers []Issuer `yaml:"issuers" doc:"OpenID Connect issuers whose tokens callers may use in place of a key" reload:"live"`

	Certificates Certificates `yaml:"certificates" doc:"client certificates that callers may use in place of a key; requires tls at the data listener" reload:"live"`

	Orgs []Org `yaml:"orgs" doc:"organisations; at least one, unless orgs_files is set" reload:"live"`

	OrgsFiles string    `yaml:"orgs_files" doc:"pattern of files with one additional organisation each, such as conf.d/*.yaml: a file contains the settings of an entry of orgs and is named after its id. Relative paths in it are resolved against its directory and must stay there, and its URLs must have public addresses; org_bounds permits more. See docs/operations.md" reload:"live"`
	OrgBounds OrgBounds `yaml:"org_bounds" doc:"restrictions for the organisations of orgs_files. Without this section, their paths must stay in the directory of the file, and their URLs must have public addresses; see docs/operations.md" reload:"live"`

	// RejectedFiles lists the organisation files that were not accepted.
	RejectedFiles []RejectedFile `yaml:"-"`
	// LegacySettings lists the paths of the settings of the retired interfaces that the files contain.
	LegacySettings []string `yaml:"-"`
	// Revision identifies this configuration in events and on the admin listener.
	Revision string `yaml:"-"`
}

// TLS configures the encryption of a listener. The zero TLS disables encryption.
type TLS struct {
	Certificate strictyaml.Secret `yaml:"certificate" doc:"PEM certificate chain, the listener's own certificate first; enabling or disabling TLS requires a restart"`
	Key         strictyaml.Secret `yaml:"key" doc:"PEM private key of the certificate"`
	// Pair is the parsed certificate and key, or nil if TLS is disabled.
	Pair *tls.Certificate `yaml:"-"`
}

// NeedsRestart implements strictyaml.Restarter. A new certificate is used immediately, but enabling or disabling TLS requires a restart.
func (t TLS) NeedsRestart(old any) bool { return (t.Pair == nil) != (old.(TLS).Pair == nil) }

// Admin configures the operators' listener.
type Admin struct {
	Listen string            `yaml:"listen" doc:"address of the admin listener; beyond loopback it requires a token or admins" reload:"restart"`
	Token  strictyaml.Secret `yaml:"token" doc:"shared token with all roles, at least 16 characters. Prefer admins, because the audit log records no name for it. If this token or any admin is configured, everything except probes and metrics requires a token" reload:"live"`
	Admins []AdminAccount    `yaml:"admins" doc:"operators, each with a name, a token and roles" reload:"live"`
	TLS    TLS               `yaml:"tls" doc:"TLS of the admin listener" reload:"restart"`

	URL string `yaml:"url" doc:"URL of the admin listener for operators, scheme and host only; links in alerts lead to its console. If empty, links for approvers lead to My team, provided that public_url is set" reload:"live"`

	Console bool `yaml:"console" doc:"serve the operators' console at /ui; beyond loopback it requires admin.tls" reload:"restart"`

	Issuers []AdminIssuer `yaml:"issuers" doc:"OpenID Connect issuers whose tokens authenticate operators; use an audience that no caller's token contains" reload:"live"`
}

// Platform configures the connection to the platform.
type Platform struct {
	BaseURL string `yaml:"base_url,required" doc:"URL of the platform's REST API, scheme and host only; https beyond loopback"`

	RunURL string `yaml:"run_url" doc:"URL of the platform's run interface, scheme and host only; if empty, the run interface is disabled"`

	BalancedURL string `yaml:"lb_url" doc:"URL of load-balanced endpoints, with {id} for the endpoint ID: https://{id}.run.example; if empty, they are disabled"`

	AllowInsecure bool `yaml:"allow_insecure" doc:"permit an http URL beyond loopback; platform keys are then sent unencrypted, so use it only in a trusted network"`

	Connections int `yaml:"connections" doc:"maximum open connections to each of these addresses, and to each load-balanced endpoint; further calls wait. 0 means no limit. Set it if the network's address translation has few ports" unit:"connections" zero:"no bound" reload:"live"`

	Proxy strictyaml.Secret `yaml:"proxy,plain" doc:"proxy for connections to the platform: an http, https or socks5 URL. A URL with a name and password must be a secret; any other may be written directly. If absent, HTTPS_PROXY, HTTP_PROXY and NO_PROXY apply" reload:"live"`
}

// Run configures the run interface.
type Run struct {
	Memory int64 `yaml:"memory" doc:"total size of the request bodies of all callers that are in progress; further requests are refused with 503. A parsed body with many small values needs several times its size" unit:"bytes" reload:"restart"`

	Batches bool `yaml:"batches" doc:"serve batches, a beta feature of the platform: jobs that are collected and run together" reload:"live"`

	WebSockets int64 `yaml:"websockets" doc:"maximum open WebSockets to load-balanced endpoints; further ones are refused with 503" unit:"connections" reload:"restart"`
}

// Redis configures the shared store. Exactly one of URL and Embedded is set.
type Redis struct {
	URL      strictyaml.Secret `yaml:"url,plain" doc:"URL of Redis: redis://user:password@host:6379/0 for one server, redis+cluster://user:password@a:6379,b:6379 for a Cluster, redis+sentinel://user:password@a:26379,b:26379/NAME for the master NAME of Sentinels (with the parameters sentinel_username and sentinel_password), or unix://user:password@/run/redis.sock?db=0 for a Unix socket. rediss in place of redis uses TLS (parameters tls_ca, tls_cert, tls_key and tls_server_name), and the parameter pool_size limits the connections to a server. A URL with a user or password must be a secret; any other may be written directly"`
	Embedded bool              `yaml:"embedded" doc:"use a store in this process, for trials and tests with a single gateway; its data is lost on restart"`
	Prefix   Prefix            `yaml:"prefix" doc:"prefix of all keys in Redis; installations that share a Redis need different prefixes"`
}

// Timeouts limits how long the gateway waits.
type Timeouts struct {
	Connect  time.Duration `yaml:"connect" doc:"connecting to the platform" reload:"live"`
	Response time.Duration `yaml:"response" doc:"waiting for the platform's response headers" reload:"live"`
	Call     time.Duration `yaml:"call" doc:"a complete call that changes something, even after its caller has disconnected" reload:"live"`
	Lookup   time.Duration `yaml:"lookup" doc:"searching for the resource of a create whose response was lost, before the caller is answered; 0 answers immediately" reload:"live"`
	Run      time.Duration `yaml:"run" doc:"waiting for each part of a run interface response, starting with the headers" reload:"live"`
	Body     time.Duration `yaml:"body" doc:"receiving a request body; for the run interface, each MiB of it" reload:"restart"`
	Write    time.Duration `yaml:"write" doc:"sending one part of a response to a caller" reload:"restart"`
	Notice   time.Duration `yaml:"notice" doc:"time to keep serving after readiness has failed, so that load balancers notice; 0 means 5s if envoy.xds has groups, otherwise no delay" reload:"restart"`
	Drain    time.Duration `yaml:"drain" doc:"time to finish requests and background work at shutdown, once the listeners have closed" reload:"restart"`
}

// Limits configures how calls are counted.
type Limits struct {
	ratelimit.Config `yaml:",inline"`

	Recovery time.Duration `yaml:"recovery" doc:"longest time for which calls are refused after a Redis restart or failover, while gateways restore their counters; at least 1s"`

	Anonymous       ratelimit.AddressConfig  `yaml:"anonymous" doc:"limit for addresses that send no valid key"`
	AnonymousExempt []netip.Prefix           `yaml:"anonymous_exempt" doc:"networks exempt from this limit, such as 10.0.0.5/32: load balancers that forward all callers"`
	FairShare       ratelimit.UpstreamConfig `yaml:"fair_share" doc:"divides a platform account among its teams when the account is near its own rate limit"`
}

// Decisions configures the decision log and how long decisions are stored.
type Decisions struct {
	policyconfig.DecisionLog `yaml:",inline"`

	Keep   int     `yaml:"keep" doc:"number of recent exchanges kept in memory for explanations" unit:"exchanges"`
	Shared Archive `yaml:"shared" doc:"decisions stored in Redis, which any gateway can explain"`
}

// Log configures the log on standard error.
type Log struct {
	Level  LogLevel  `yaml:"level" doc:"minimum level of log lines" reload:"live"`
	Format LogFormat `yaml:"format" doc:"format of log lines"`
}

// LogLevel is a minimum log level.
type LogLevel string

// Values implements strictyaml.Enum.
func (LogLevel) Values() []string { return []string{"debug", "info", "warn", "error"} }

// Level converts l to a slog.Level. It returns slog.LevelInfo if l is not valid.
func (l LogLevel) Level() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l)); err != nil {
		return slog.LevelInfo // the decoder accepts only known levels
	}
	return level
}

// LogFormat is the format of log lines.
type LogFormat string

// Values implements strictyaml.Enum.
func (LogFormat) Values() []string { return []string{"json", "text"} }

// Default returns the configuration that a file is decoded into.
func Default() Config {
	return Config{
		Listen:  "127.0.0.1:8080",
		Console: true,
		Admin:   Admin{Listen: "127.0.0.1:8081", Console: true},
		Envoy:   Envoy{XDS: XDS{PlatformCA: "/etc/ssl/certs/ca-certificates.crt"}},
		Redis:   Redis{Prefix: DefaultPrefix},
		Timeouts: Timeouts{Connect: 5 * time.Second, Response: time.Minute, Call: 90 * time.Second, Lookup: 20 * time.Second,
			Run: 330 * time.Second, Body: 15 * time.Second, Write: 30 * time.Second, Drain: 20 * time.Second},
		Run:         Run{Memory: 256 << 20, WebSockets: 1000},
		Connections: Connections{Total: 10000, PerAddress: 500},
		Overload:    overload.DefaultConfig(),
		Limits: Limits{
			Config: ratelimit.DefaultConfig(), Recovery: redisstore.DefaultRecovery,
			Anonymous: ratelimit.DefaultAddressConfig(), FairShare: ratelimit.DefaultUpstreamConfig(),
		},
		Policies:  policyconfig.DefaultLimits(),
		Decisions: Decisions{DecisionLog: policyconfig.DefaultDecisionLog(), Keep: 1000, Shared: DefaultArchive()},
		Spend:     ledger.DefaultConfig(),
		Catalog:   catalog.DefaultConfig(),
		Telemetry: Telemetry{SampleRatio: 0.01},
		Log:       Log{Level: "info", Format: "json"},
		Legacy:    defaultLegacy(),
		V1:        defaultV1(),
		GraphQL:   defaultGraphQL(),
	}
}

// Directory builds the directory that identifies callers by keys, tokens and certificates.
func (c *Config) Directory(issuers *identity.Issuers, authorities *identity.Authorities) (*identity.Directory, error) {
	keys := 0
	for i := range c.Orgs {
		keys += len(c.Orgs[i].Keys)
	}
	entries := make([]identity.Entry, 0, keys)
	for i := range c.Orgs {
		o := &c.Orgs[i]
		for j := range o.Keys {
			entries = o.Keys[j].Entries(entries, o.ID)
		}
	}
	return identity.NewDirectory(entries, issuers, authorities)
}

// Validate returns the faults that involve several sections, with paths of the file.
func (c *Config) Validate() error {
	var errs fault.Found
	orgs := make(map[string]bool)
	accounts := make(map[string]string) // organisation by credential
	for i := range c.Orgs {
		var found fault.Found
		o := &c.Orgs[i]
		for _, given := range [...]struct{ field, secret string }{{"credential", o.Credential.Reveal()}, {"run_credential", o.RunCredential.Reveal()}} {
			other, taken := accounts[given.secret]
			found.If(taken && other != o.ID, given.field,
				"organisation %q has the same credential, so each could read and delete the other's resources; use separate platform accounts", other)
			if given.secret != "" {
				accounts[given.secret] = o.ID
			}
		}
		found.If(orgs[o.ID], "id", "organisation %q is already defined", o.ID)
		orgs[o.ID] = true
		if d := o.Idle.For; d > 0 && d < 2*c.Spend.Reconcile {
			found.Add("idle.for", "must be at least twice spend.reconcile, which is %s", c.Spend.Reconcile)
		}
		found.If(!o.Alerts.SnoozeSecret.IsZero() && c.PublicURL == "", "alerts.snooze_secret", "needs public_url, the target of links")
		if len(found) > 0 {
			errs = append(errs, fault.At(fault.Index("orgs", i), errors.Join(found...)))
		}
		if !o.Reused {
			errs = append(errs, o.validate(fault.Index("orgs", i))...)
		}
	}
	if org := c.Legacy.Keyless.Org; org != "" && !orgs[org] {
		errs = append(errs, fault.Errorf("legacy.keyless.org", "no organisation %q is defined", org))
	}
	u, err := url.Parse(c.Admin.URL)
	errs.If(c.Admin.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
		strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" || u.User != nil),
		"admin.url", "must be the scheme and host of an address, such as https://tollgate.example")
	errs = append(errs, fault.At("contact", checkContact(c.Contact)), c.sharedKeys())
	return errors.Join(append(errs, c.validateIssuers())...)
}

// maxContact is the maximum length of contact in bytes. Every refusal contains it.
const maxContact = 200

// checkContact returns a fault if line is too long or contains control characters.
func checkContact(line string) error {
	if len(line) > maxContact || strings.ContainsFunc(line, unicode.IsControl) {
		return fmt.Errorf("must be one line of at most %d bytes", maxContact)
	}
	return nil
}

// DecisionPages returns the URL prefix of the pages on which callers see their decisions. It is "" if the console or public_url is not
// configured.
func (c *Config) DecisionPages() string {
	if !c.Console || c.PublicURL == "" {
		return ""
	}
	return strings.TrimSuffix(c.PublicURL, "/") + "/tollgate/ui/requests/"
}

// sharedKeys returns faults for keys with the same secret: a key must identify one caller.
func (c *Config) sharedKeys() error {
	var errs fault.Found
	first := make(map[identity.Digest]string, len(c.Orgs))
	platform := make(map[identity.Digest]string, len(c.Orgs))
	for i := range c.Orgs {
		for _, s := range []strictyaml.Secret{c.Orgs[i].Credential, c.Orgs[i].RunCredential} {
			if s.Resolved() {
				platform[identity.DigestOf(s.Reveal())] = c.Orgs[i].ID
			}
		}
	}
	for i := range c.Orgs {
		for j := range c.Orgs[i].Keys {
			k := &c.Orgs[i].Keys[j]
			for _, d := range k.Secrets() {
				if other, taken := first[d.Digest]; taken {
					errs.Add(fault.Index(fault.Index("orgs", i)+".keys", j), "keys %q and %q are the same key", other, k.ID)
				}
				first[d.Digest] = k.ID
				if org, given := platform[d.Digest]; given {
					errs.Add(fault.Index(fault.Index("orgs", i)+".keys", j),
						"is the platform key of organisation %q, with which the caller can bypass the gateway; create another key with tollgate keys create", org)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// NeedRestart returns the paths of the settings that differ in next and require a restart.
func (c *Config) NeedRestart(next *Config) []string { return strictyaml.NeedRestart(*c, *next) }

// Org returns the organisation with an ID, or nil.
func (c *Config) Org(id string) *Org {
	for i := range c.Orgs {
		if c.Orgs[i].ID == id {
			return &c.Orgs[i]
		}
	}
	return nil
}

// ServesReads reports whether reads of an organisation are allowed while the counter store is unavailable.
func (c *Config) ServesReads(o *Org) bool {
	return o.Failure.WithDefaults(c.Limits.Failure)[ratelimit.ClassRead] != ratelimit.FailClosed
}

// ShutdownNotice returns how long the gateway keeps serving after it was asked to stop.
func (c *Config) ShutdownNotice() time.Duration {
	if c.Timeouts.Notice == 0 && len(c.Envoy.XDS.Groups) > 0 {
		return defaultNotice
	}
	return c.Timeouts.Notice
}

// InstanceName returns the name of this process in the log and among the gateways that share a store: the configured name, or the host name
// with a random suffix.
func (c *Config) InstanceName() string {
	host, err := os.Hostname()
	if err != nil || ratelimit.CheckGateway(host) != nil {
		host = "tollgate"
	}
	return cmp.Or(c.Instance, host+"-"+rand.Text()[:8])
}

// AdvertisedAddr returns the configured address at which Envoys reach this gateway. An unspecified address means that the local address of
// the route to Redis is used.
func (c *Config) AdvertisedAddr() netip.Addr {
	if c.Envoy.XDS.Advertise.IsValid() {
		return c.Envoy.XDS.Advertise
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	if host == "" {
		return netip.IPv6Unspecified()
	}
	addr, _ := netip.ParseAddr(host) // host names yield the zero address
	return addr
}

// AssignIssued assigns to each organisation the issuers and certificate authorities whose callers belong to it.
func (c *Config) AssignIssued() {
	for n := range c.Orgs {
		o := &c.Orgs[n]
		o.Issued = nil
		for _, i := range c.Issuers {
			if slices.Contains(i.Orgs, o.ID) {
				o.Issued = append(o.Issued, Issued{i.ID, i.Limit, i.Budget})
			}
		}
		for _, a := range c.Certificates.Authorities {
			if slices.Contains(a.Orgs, o.ID) {
				o.Issued = append(o.Issued, Issued{a.ID, a.Limit, a.Budget})
			}
		}
	}
}

// Teams returns the team IDs of each organisation.
func (c *Config) Teams() map[string][]string {
	teams := make(map[string][]string, len(c.Orgs))
	for i := range c.Orgs {
		for _, t := range c.Orgs[i].Teams {
			teams[c.Orgs[i].ID] = append(teams[c.Orgs[i].ID], t.ID)
		}
	}
	return teams
}

// validateIssuers returns the faults of issuers and certificate authorities, including references to organisations.
func (c *Config) validateIssuers() error {
	var errs fault.Found
	ids, urls := make(map[string]bool), make(map[string]bool)
	issued := func(at, id string, m *identity.Mapping, limit *ratelimit.Limit, budget *ledger.Budget) {
		errs = append(errs, fault.At(at+".limits", limit.Validate()), fault.At(at+".budget", budget.Validate()),
			fault.At(at, c.validateMapping(m)))
		errs.If(ids[id], at+".id", "issuer %q is already defined", id)
		ids[id] = true
	}
	for n := range c.Issuers {
		i, at := &c.Issuers[n], fault.Index("issuers", n)
		errs = append(errs, fault.At(at, errors.Join(i.Validate(), i.Login.validate(i.Audiences))))
		issued(at, i.ID, &i.Mapping, &i.Limit, &i.Budget)
		errs.If(urls[i.URL], at+".url", "is also used by another issuer")
		urls[i.URL] = true
	}
	for n := range c.Certificates.Authorities {
		a, at := &c.Certificates.Authorities[n], fault.Index("certificates.authorities", n)
		errs = append(errs, fault.At(at, a.Validate()))
		issued(at, a.ID, &a.Mapping, &a.Limit, &a.Budget)
	}
	for n := range c.Orgs {
		for m, k := range c.Orgs[n].Keys {
			if issuer, _, found := strings.Cut(k.ID, ":"); found && ids[issuer] {
				errs = append(errs, fault.Errorf(fault.Index(fault.Index("orgs", n)+".keys", m)+".id",
					"has the prefix of the callers of issuer %q; use another id", issuer))
			}
		}
	}
	return errors.Join(append(errs, fault.At("certificates", c.validateCertificates()))...)
}

// validateCertificates returns a fault if caller certificates are configured but no listener requests them.
func (c *Config) validateCertificates() error {
	switch n := len(c.Certificates.Authorities); {
	case n == 0 && c.Certificates.Required:
		return fault.Errorf("required", "needs authorities")
	case n > 0 && c.TLS.Certificate.IsZero():
		return fault.Errorf("authorities", "need tls: without it the data listener cannot request certificates")
	case c.Certificates.Required && c.Envoy.Listen != "":
		return fault.Errorf("required", "cannot be enforced through envoy.listen, because Envoy does not forward the caller's certificate")
	}
	return nil
}

// validateMapping returns faults for organisations, teams and labels that do not exist.
func (c *Config) validateMapping(m *identity.Mapping) error {
	var errs fault.Found
	for n, org := range m.Orgs {
		errs.If(c.Org(org) == nil, fault.Index("orgs", n), "no organisation %q is defined", org)
	}
	teams := c.Teams()
	known := func(team string) bool {
		return slices.ContainsFunc(m.Orgs, func(org string) bool { return slices.Contains(teams[org], team) })
	}
	errs.If(m.Team != "" && !known(m.Team), "team", "none of its organisations has a team %q", m.Team)
	for value, team := range m.Teams {
		errs.If(!known(team), fault.Key("teams", value), "none of its organisations has a team %q", team)
	}
	for name := range m.Labels {
		for _, o := range c.Orgs {
			errs.If(slices.Contains(m.Orgs, o.ID) && !slices.ContainsFunc(o.Labels, func(r ledger.LabelRule) bool { return r.Name == name }),
				fault.Key("labels", name), "organisation %q has no label %q", o.ID, name)
		}
	}
	return errors.Join(errs...)
}
