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
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Config is the complete configuration of a gateway. Package config decodes the file into it, starting from [Default].
//
// Struct tags describe each setting: doc is the description, and unit is the unit of a number. The tag reload says whether a new value
// takes effect when the configuration is reloaded ("live") or only after a restart ("restart"). The reload tag of a section applies to all
// settings in the section.
type Config struct {
	Listen    string `yaml:"listen" doc:"address of the data listener, which serves callers" reload:"restart"`
	PublicURL string `yaml:"public_url" doc:"URL of this gateway for callers, with scheme and host only. Endpoint records contain this URL in place of the platform's run URL" reload:"live"`

	Contact problem.Contact `yaml:",inline"`

	PublicBalancedURL string `yaml:"public_lb_url" doc:"URL of load-balanced endpoints at this gateway, with {id} for the endpoint ID, such as https://{id}.lb.example. If empty, callers reach these endpoints only below public_url" reload:"live"`

	Instance string `yaml:"instance" doc:"name of this gateway, unique in the store; default the host name with a random suffix" reload:"restart"`

	Console bool `yaml:"console" doc:"serve My team, the console for callers and team leads, at /tollgate/ui. A non-loopback listener requires tls, or balancers.forwarded_hops if load balancers terminate TLS" reload:"restart"`

	TLS      TLS      `yaml:"tls" doc:"TLS of the data listener. Without TLS, permit connections only from a proxy on the same host or from a trusted network" reload:"restart"`
	Admin    Admin    `yaml:"admin" doc:"listener for operators"`
	Envoy    Envoy    `yaml:"envoy" doc:"connection to Envoy proxies"`
	Platform Platform `yaml:"platform" doc:"platform that receives the calls" reload:"live"`
	Redis    Redis    `yaml:"redis" doc:"Redis store that all gateways share" reload:"restart"`
	Timeouts Timeouts `yaml:"timeouts" doc:"time limits"`
	Run      Run      `yaml:"run" doc:"run interface, enabled by platform.run_url"`

	Balancers   Balancers   `yaml:"balancers" doc:"load balancers that may forward client addresses to the data listener" reload:"restart"`
	Connections Connections `yaml:"connections" doc:"limits on open connections" reload:"restart"`

	Overload overload.Config `yaml:"overload" doc:"limits on concurrent requests; see docs/operations.md" reload:"restart"`

	Limits Limits `yaml:"limits" doc:"counting of calls for rate limits. Each organisation sets its own limits" reload:"restart"`

	Policies  policyconfig.Limits `yaml:"policies" doc:"limits of policy evaluations" reload:"live"`
	Decisions Decisions           `yaml:"decisions" doc:"destinations of the decision log, and storage of recent decisions" reload:"restart"`
	Audit     Audit               `yaml:"audit" doc:"audit log of changes" reload:"restart"`
	Spend     ledger.Config       `yaml:"spend" doc:"spending ledger. Each organisation sets its own budgets" reload:"restart"`
	Catalog   catalog.Config      `yaml:"catalog" doc:"price lists" reload:"restart"`
	Telemetry Telemetry           `yaml:"telemetry" doc:"traces, metrics and logs"`
	Log       Log                 `yaml:"log" doc:"log on standard error" reload:"restart"`
	Legacy    Legacy              `yaml:"legacy" doc:"settings of both retired interfaces, v1 and GraphQL" reload:"live"`
	V1        V1                  `yaml:"v1" doc:"settings of the v1 interface" reload:"live"`
	GraphQL   GraphQL             `yaml:"graphql" doc:"settings of the GraphQL interface" reload:"live"`

	Issuers []Issuer `yaml:"issuers" doc:"OpenID Connect issuers whose tokens callers can use in place of a key" reload:"live"`

	Certificates Certificates `yaml:"certificates" doc:"client certificates that callers can use in place of a key. Requires tls for the data listener" reload:"live"`

	Orgs []Org `yaml:"orgs" doc:"organisations. At least one organisation is required unless orgs_files is set" reload:"live"`

	OrgsFiles string    `yaml:"orgs_files" doc:"pattern of organisation files, such as conf.d/*.yaml. Each file defines one organisation, like an entry of orgs, and is named after its id. Relative paths start at the directory of the file. See docs/operations.md" reload:"live"`
	OrgBounds OrgBounds `yaml:"org_bounds" doc:"restrictions on the organisations in orgs_files. Without this section, an organisation's file can only refer to paths in its own directory and URLs with public addresses. See docs/operations.md" reload:"live"`

	// RejectedFiles lists the organisation files that were rejected because of a fault.
	RejectedFiles []RejectedFile `yaml:"-"`
	// LegacySettings lists the paths of those settings in the files that concern the retired interfaces.
	LegacySettings []string `yaml:"-"`
	// Revision identifies this configuration in events and on the admin listener.
	Revision string `yaml:"-"`
}

// TLS configures TLS for a listener. The zero value disables TLS.
type TLS struct {
	Certificate strictyaml.Secret `yaml:"certificate" doc:"PEM certificate chain, starting with the server certificate"`
	Key         strictyaml.Secret `yaml:"key" doc:"PEM private key of the certificate"`
	// Pair is the parsed certificate and key, or nil if TLS is disabled.
	Pair *tls.Certificate `yaml:"-"`
}

// NeedsRestart implements strictyaml.Restarter. A new certificate is used immediately, but enabling or disabling TLS requires a restart.
func (t TLS) NeedsRestart(old any) bool { return (t.Pair == nil) != (old.(TLS).Pair == nil) }

// Admin configures the admin listener.
type Admin struct {
	Listen string `yaml:"listen" doc:"address of the admin listener. Non-loopback addresses require token, admins or issuers" reload:"restart"`

	Token  strictyaml.Secret `yaml:"token" doc:"shared token of at least 16 characters with all roles. Prefer admins, whose names the audit log records. If token, admins or issuers is set, all requests except probes and metrics require a token" reload:"live"`
	Admins []AdminAccount    `yaml:"admins" doc:"operators, each with a name, a token and roles" reload:"live"`
	TLS    TLS               `yaml:"tls" doc:"TLS of the admin listener" reload:"restart"`

	URL string `yaml:"url" doc:"URL of the admin listener for links in alerts, with scheme and host only. If empty, links for approvers point to My team, provided that public_url is set" reload:"live"`

	Console bool `yaml:"console" doc:"serve the operators' console at /ui. A non-loopback listener requires admin.tls" reload:"restart"`

	Issuers []AdminIssuer `yaml:"issuers" doc:"OpenID Connect issuers of operators' tokens. Use an audience that callers' tokens do not contain" reload:"live"`
}

// Platform configures the connection to the platform.
type Platform struct {
	BaseURL string `yaml:"base_url,required" doc:"URL of the platform's REST API, with scheme and host only; https unless the host is on loopback or allow_insecure is set"`

	RunURL string `yaml:"run_url" doc:"URL of the platform's run interface, with scheme and host only; empty disables the interface"`

	BalancedURL string `yaml:"lb_url" doc:"URL of load-balanced endpoints, with {id} for the endpoint ID, such as https://{id}.run.example; empty disables these endpoints"`

	AllowInsecure bool `yaml:"allow_insecure" doc:"permit http URLs of non-loopback hosts, for trusted networks only. Platform keys are then sent unencrypted"`

	Connections int `yaml:"connections" doc:"maximum open connections to each platform URL and each load-balanced endpoint, shared by all organisations. Further calls wait, so slow calls of one organisation can delay the others; 0 means no limit. Set a limit if your network's NAT has few ports" unit:"connections" zero:"no bound" reload:"live"`

	Proxy strictyaml.Secret `yaml:"proxy,plain" doc:"http, https or socks5 URL of a proxy to the platform; a secret if it contains a user name and password. Default HTTPS_PROXY, HTTP_PROXY and NO_PROXY" reload:"live"`
}

// Run configures the run interface.
type Run struct {
	Memory int64 `yaml:"memory" doc:"maximum total size of request bodies in progress. Further requests are refused with 503. A parsed body with many small values occupies several times its size" unit:"bytes" reload:"restart"`

	Batches bool `yaml:"batches" doc:"serve batches, a beta feature of the platform" reload:"live"`

	WebSockets int64 `yaml:"websockets" doc:"maximum open WebSockets to load-balanced endpoints. Further WebSockets are refused with 503" unit:"connections" reload:"restart"`
}

// Redis configures the shared store. Exactly one of URL and Embedded is set.
type Redis struct {
	URL strictyaml.Secret `yaml:"url,plain" doc:"URL of Redis: redis://user:password@host:6379/0 for a single server, redis+cluster://user:password@a:6379,b:6379 for a Cluster, redis+sentinel://user:password@a:26379,b:26379/NAME for the master NAME of Sentinels (parameters sentinel_username, sentinel_password), or unix://user:password@/run/redis.sock?db=0 for a Unix socket. rediss enables TLS (parameters tls_ca, tls_cert, tls_key, tls_server_name). The parameter pool_size limits the connections to each server. A URL with a user name or password must be a secret"`

	Embedded bool `yaml:"embedded" doc:"use an in-memory store, for trials with one gateway. All data is lost on restart"`

	Prefix Prefix `yaml:"prefix" doc:"prefix of all keys in Redis, different for each installation that shares a Redis"`
}

// Timeouts sets the time limits of the gateway's operations.
type Timeouts struct {
	Connect  time.Duration `yaml:"connect" doc:"time limit for connecting to the platform" reload:"live"`
	Response time.Duration `yaml:"response" doc:"time limit for the platform's response headers" reload:"live"`
	Call     time.Duration `yaml:"call" doc:"time limit for a call that changes something, even after the caller disconnects" reload:"live"`
	Lookup   time.Duration `yaml:"lookup" doc:"maximum time to search for a created resource after a lost response, until the caller receives an answer; 0 answers immediately" reload:"live"`
	Run      time.Duration `yaml:"run" doc:"time limit for each part of a run interface response, including the headers" reload:"live"`
	Body     time.Duration `yaml:"body" doc:"time limit for receiving a request body or, on the run interface, each MiB of the body" reload:"restart"`
	Write    time.Duration `yaml:"write" doc:"time limit for sending one part of a response" reload:"restart"`
	Notice   time.Duration `yaml:"notice" doc:"time to keep serving at shutdown while the readiness probe fails, so that load balancers notice; 0 means 5s with envoy.xds.groups, otherwise no delay" reload:"restart"`
	Drain    time.Duration `yaml:"drain" doc:"time to finish requests and background work after the listeners close" reload:"restart"`
}

// leastTimeout is the smallest accepted timeout. With smaller values, every call would fail.
const leastTimeout = 10 * time.Millisecond

// Validate returns the faults of the settings.
func (t Timeouts) Validate() error {
	var errs fault.Found
	for path, d := range map[string]time.Duration{
		"connect": t.Connect, "response": t.Response, "call": t.Call, "run": t.Run, "body": t.Body, "write": t.Write, "drain": t.Drain,
	} {
		errs.If(d < leastTimeout, path, "must be at least %s, got %s", leastTimeout, d)
	}
	errs.If(t.Lookup < 0, "lookup", "must not be negative")
	return errors.Join(errs...)
}

// Limits configures how calls are counted.
type Limits struct {
	ratelimit.Config `yaml:",inline"`

	Recovery time.Duration `yaml:"recovery" doc:"maximum time, at least 1s, that calls are refused while gateways restore their counters after a Redis restart or failover"`

	Anonymous       ratelimit.AddressConfig  `yaml:"anonymous" doc:"rate limit of each address without a valid key"`
	AnonymousExempt []netip.Prefix           `yaml:"anonymous_exempt" doc:"networks exempt from limits.anonymous, such as 10.0.0.5/32 for a load balancer"`
	FairShare       ratelimit.UpstreamConfig `yaml:"fair_share" doc:"sharing of the account's platform rate limit among teams when it is nearly reached"`
}

// Decisions configures the decision log and how long decisions are stored.
type Decisions struct {
	policyconfig.DecisionLog `yaml:",inline"`

	Keep   int     `yaml:"keep" doc:"recent requests kept in memory, to explain decisions" unit:"exchanges"`
	Shared Archive `yaml:"shared" doc:"decisions stored in Redis, so that any gateway can explain them"`
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

// Level converts l to a slog.Level. If l is empty, Level returns slog.LevelInfo.
func (l LogLevel) Level() slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l)) // the decoder accepts only known levels
	return level
}

// LogFormat is the format of log lines.
type LogFormat string

// Values implements strictyaml.Enum.
func (LogFormat) Values() []string { return []string{"json", "text"} }

// Default returns the configuration with all default values. Package config decodes the file into it.
func Default() Config {
	return Config{
		Listen:  "127.0.0.1:8080",
		Console: true,
		Admin:   Admin{Listen: "127.0.0.1:8081", Console: true},
		Envoy:   Envoy{XDS: XDS{PlatformCA: "/etc/ssl/certs/ca-certificates.crt"}},
		Redis:   Redis{Prefix: DefaultPrefix},
		Timeouts: Timeouts{
			Connect: 5 * time.Second, Response: time.Minute, Call: 90 * time.Second, Lookup: 20 * time.Second,
			Run: 330 * time.Second, Body: 15 * time.Second, Write: 30 * time.Second, Drain: 20 * time.Second,
		},
		Run:         Run{Memory: 256 << 20, WebSockets: 1000},
		Connections: Connections{Total: 10000, PerAddress: 500},
		Overload:    overload.DefaultConfig(),
		Limits: Limits{
			Config: ratelimit.DefaultConfig(), Recovery: ratelimit.DefaultRecovery, Anonymous: ratelimit.DefaultAddressConfig(),
		},
		Policies:  policyconfig.DefaultLimits(),
		Decisions: Decisions{DecisionLog: policyconfig.DefaultDecisionLog(), Keep: 1000, Shared: DefaultArchive()},
		Spend:     ledger.DefaultConfig(),
		Catalog:   catalog.DefaultConfig(),
		Telemetry: Telemetry{SampleRatio: 0.01},
		Log:       Log{Level: "info", Format: "json"},
		Legacy: Legacy{
			Answers: "faithful", Deprecated: "2026-11-15",
			Keyless: Keyless{Limit: ratelimit.AddressConfig{Rate: 300, Burst: 1000}},
		},
		V1:      V1{Budget: 25 * time.Second, VolumeBudget: 9 * time.Second},
		GraphQL: GraphQL{Introspection: true, CreateTimeout: 25 * time.Second, Timeout: 9 * time.Second},
	}
}

// Directory returns a directory that identifies callers by their keys, tokens and certificates.
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

// Validate returns the faults of organisations and the faults that involve several sections, joined, with full paths. The package config
// checks the other sections.
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
		found.If(!o.Alerts.SnoozeSecret.IsZero() && c.PublicURL == "", "alerts.snooze_secret", "requires public_url, because links point to it")
		if len(found) > 0 {
			errs = append(errs, fault.At(fault.Index("orgs", i), errors.Join(found...)))
		}
		if !o.Reused {
			errs = append(errs, o.validate(fault.Index("orgs", i))...)
		}
	}
	org := c.Legacy.Keyless.Org
	errs.If(org != "" && !orgs[org], "legacy.keyless.org", "organisation %q is not defined", org)
	u, err := url.Parse(c.Admin.URL)
	errs.If(c.Admin.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
		strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" || u.User != nil),
		"admin.url", "must be a URL with only a scheme and host, such as https://tollgate.example")
	errs = append(errs, fault.At("contact", checkContact(c.Contact)), c.sharedKeys())
	return errors.Join(append(errs, c.validateIssuers())...)
}

// maxContact is the maximum length of contact in bytes. Every refusal contains it.
const maxContact = 200

// checkContact returns an error if the text is too long or contains control characters.
func checkContact(c problem.Contact) error {
	if len(c.Text) > maxContact || strings.ContainsFunc(c.Text, unicode.IsControl) {
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

// sharedKeys returns a fault for each key with the secret of another key, because a secret must identify one caller.
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
					errs.Add(fault.Index(fault.Index("orgs", i)+".keys", j), "keys %q and %q have the same digest", other, k.ID)
				}
				first[d.Digest] = k.ID
				if org, given := platform[d.Digest]; given {
					errs.Add(fault.Index(fault.Index("orgs", i)+".keys", j),
						"is the platform key of organisation %q, so the caller can bypass the gateway; create another key with tollgate keys create", org)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// NeedRestart returns the paths of the settings that differ in next and require a restart.
func (c *Config) NeedRestart(next *Config) []string { return strictyaml.NeedRestart(*c, *next) }

// Org returns the organisation with the given ID, or nil if it does not exist.
func (c *Config) Org(id string) *Org {
	for i := range c.Orgs {
		if c.Orgs[i].ID == id {
			return &c.Orgs[i]
		}
	}
	return nil
}

// ServesReads reports whether the gateway allows read calls of an organisation while the counter store is unavailable.
func (c *Config) ServesReads(o *Org) bool {
	return o.Failure.WithDefaults(c.Limits.Failure)[ratelimit.ClassRead] != ratelimit.FailClosed
}

// ShutdownNotice returns how long the gateway continues to serve requests after it received the signal to stop.
func (c *Config) ShutdownNotice() time.Duration {
	if c.Timeouts.Notice == 0 && len(c.Envoy.XDS.Groups) > 0 {
		return defaultNotice
	}
	return c.Timeouts.Notice
}

// InstanceName returns the name that identifies this process in the log and in the shared store. It is the configured name or, if no name
// is configured, the host name with a random suffix that differs for each call.
func (c *Config) InstanceName() string {
	host, err := os.Hostname()
	if err != nil || ratelimit.CheckGateway(host) != nil {
		host = "tollgate"
	}
	return cmp.Or(c.Instance, host+"-"+rand.Text()[:8])
}

// AdvertisedAddr returns the address where Envoys reach this gateway, from envoy.xds.advertise or listen. If the address is unspecified
// (see [netip.Addr.IsUnspecified]), the gateway registers the local address of its connection to Redis. If listen contains a host name, the
// result is the zero Addr.
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

// AssignIssued sets [Org.Issued] of each organisation.
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
		errs.If(urls[i.URL], at+".url", "is already used by another issuer")
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
					"begins with the prefix of IDs of callers of issuer %q; use another id", issuer))
			}
		}
	}
	return errors.Join(append(errs, fault.At("certificates", c.validateCertificates()))...)
}

// validateCertificates returns a fault if certificates of callers are configured but no listener requests certificates.
func (c *Config) validateCertificates() error {
	switch n := len(c.Certificates.Authorities); {
	case n == 0 && c.Certificates.Required:
		return fault.Errorf("required", "requires authorities to be set")
	case n > 0 && c.TLS.Certificate.IsZero():
		return fault.Errorf("authorities", "requires tls, because the data listener cannot request certificates without TLS")
	case c.Certificates.Required && c.Envoy.Listen != "":
		return fault.Errorf("required", "cannot be enforced through envoy.listen, because Envoy does not forward the caller's certificate")
	}
	return nil
}

// validateMapping returns faults for organisations, teams and labels that do not exist.
func (c *Config) validateMapping(m *identity.Mapping) error {
	var errs fault.Found
	for n, org := range m.Orgs {
		errs.If(c.Org(org) == nil, fault.Index("orgs", n), "organisation %q is not defined", org)
	}
	teams := c.Teams()
	known := func(team string) bool {
		return slices.ContainsFunc(m.Orgs, func(org string) bool { return slices.Contains(teams[org], team) })
	}
	errs.If(m.Team != "" && !known(m.Team), "team", "team %q is not defined in any organisation in orgs", m.Team)
	for value, team := range m.Teams {
		errs.If(!known(team), fault.Key("teams", value), "team %q is not defined in any organisation in orgs", team)
	}
	for name := range m.Labels {
		for _, o := range c.Orgs {
			errs.If(slices.Contains(m.Orgs, o.ID) && !slices.ContainsFunc(o.Labels, func(r ledger.LabelRule) bool { return r.Name == name }),
				fault.Key("labels", name), "label %q is not defined in organisation %q", name, o.ID)
		}
	}
	return errors.Join(errs...)
}
