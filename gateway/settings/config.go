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
	"github.com/tollgate-dev/tollgate/translate/graphql"
	"github.com/tollgate-dev/tollgate/translate/legacy"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// Config is everything a Gateway is made from, as its file says it: package config
// reads it. Start from Default.
//
// The tags are all that is known of a setting besides its type and default: doc
// describes it, unit says what its number counts, and reload says whether a new
// value takes effect when the configuration is loaded again ("live") or requires a
// restart ("restart"); it holds for the settings below, too.
type Config struct {
	Listen    string `yaml:"listen" doc:"address of the data listener" reload:"restart"`
	PublicURL string `yaml:"public_url" doc:"where callers reach this gateway, scheme and host only; records of endpoints name it instead of the platform's run interface" reload:"live"`

	Contact string `yaml:"contact" doc:"where callers get help with refusals, such as '#gpu-platform' or an address; every refusal shows it, with the address of the decision's page where public_url and console are set; empty shows none" reload:"live"`

	PublicBalancedURL string `yaml:"public_lb_url" doc:"where callers reach load-balanced endpoints by host name, with {id} for the endpoint's id: https://{id}.lb.example; empty has them below public_url alone" reload:"live"`

	Instance string `yaml:"instance" doc:"the name of this gateway among those that share the store; it must be unique; empty is the host's name and a random suffix" reload:"restart"`

	Console bool `yaml:"console" doc:"serve My team, pages for callers and leads, at /tollgate/ui of the data listener; beyond loopback they require tls, or balancers with forwarded_hops that speak TLS" reload:"restart"`

	TLS      TLS      `yaml:"tls" doc:"encryption of the data listener; without it, only a proxy on the same host or a trusted network may reach it" reload:"restart"`
	Admin    Admin    `yaml:"admin" doc:"the operators' listener"`
	Envoy    Envoy    `yaml:"envoy" doc:"Envoy in front"`
	Platform Platform `yaml:"platform" doc:"the platform that calls are sent to" reload:"live"`
	Redis    Redis    `yaml:"redis" doc:"the store that all gateways share" reload:"restart"`
	Timeouts Timeouts `yaml:"timeouts" doc:"bounds in time"`
	Run      Run      `yaml:"run" doc:"the run interface, which is served when platform.run_url is set"`

	Balancers   Balancers   `yaml:"balancers" doc:"load balancers in front of the data listener that are believed about where callers are" reload:"restart"`
	Connections Connections `yaml:"connections" doc:"bounds on connections" reload:"restart"`

	Overload  overload.Config     `yaml:"overload" doc:"bounds on calls and work under way; see operations.md" reload:"restart"`
	Limits    Limits              `yaml:"limits" doc:"how calls are counted; the quotas are the organisations'" reload:"restart"`
	Policies  policyconfig.Limits `yaml:"policies" doc:"what evaluations of policies may use" reload:"live"`
	Decisions Decisions           `yaml:"decisions" doc:"where decisions are logged and how long they are remembered" reload:"restart"`
	Audit     Audit               `yaml:"audit" doc:"the record of changes" reload:"restart"`
	Spend     ledger.Config       `yaml:"spend" doc:"how the ledger of spending is kept; the budgets are the organisations'" reload:"restart"`
	Catalog   catalog.Config      `yaml:"catalog" doc:"how price lists are kept" reload:"restart"`
	Telemetry Telemetry           `yaml:"telemetry" doc:"traces, metrics and logs"`
	Log       Log                 `yaml:"log" doc:"the log on standard error" reload:"restart"`
	Legacy    Legacy              `yaml:"legacy" doc:"settings of both legacy dialects, v1 and GraphQL" reload:"live"`
	V1        v1.Config           `yaml:"v1" doc:"settings of the v1 dialect" reload:"live"`
	GraphQL   graphql.Config      `yaml:"graphql" doc:"settings of the GraphQL dialect" reload:"live"`

	Issuers []Issuer `yaml:"issuers" doc:"OpenID Connect issuers whose tokens callers may send instead of a key" reload:"live"`

	Certificates Certificates `yaml:"certificates" doc:"certificates that callers may have instead of a key, at a data listener with tls" reload:"live"`

	Orgs []Org `yaml:"orgs" doc:"the organisations served; at least one, unless orgs_files is set" reload:"live"`

	OrgsFiles string    `yaml:"orgs_files" doc:"pattern of files with one more organisation each, such as conf.d/*.yaml: a file has the settings of an entry of orgs and is named after its id. Paths in it begin where it is and stay in its directory, and its URLs lead to public addresses, as org_bounds says; see docs/operations.md" reload:"live"`
	OrgBounds OrgBounds `yaml:"org_bounds" doc:"bounds on the organisations of orgs_files. Their paths and URLs are confined even without bounds: paths to the directory of the file, URLs to public addresses; see docs/operations.md" reload:"live"`

	// RejectedFiles are the files of organisations that could not be taken.
	RejectedFiles []RejectedFile `yaml:"-"`
	// Revision names this configuration in events and on the admin listener.
	Revision string `yaml:"-"`
}

// TLS is the encryption of a listener; the zero TLS is none.
type TLS struct {
	Certificate strictyaml.Secret `yaml:"certificate" doc:"certificate chain in PEM, the listener's own first; turning TLS on or off at a listener of the gateway requires a restart"`
	Key         strictyaml.Secret `yaml:"key" doc:"its private key in PEM"`
	// Pair is both, parsed; nil without TLS.
	Pair *tls.Certificate `yaml:"-"`
}

// NeedsRestart implements strictyaml.Restarter: another certificate is served at
// once, but a listener cannot begin or stop to speak TLS.
func (t TLS) NeedsRestart(old any) bool { return (t.Pair == nil) != (old.(TLS).Pair == nil) }

// Admin is the operators' listener.
type Admin struct {
	Listen string            `yaml:"listen" doc:"address of the admin listener; beyond loopback it needs a token or admins" reload:"restart"`
	Token  strictyaml.Secret `yaml:"token" doc:"token of all roles, at least 16 characters, that no name is recorded for: prefer admins. A token, this or that of an admin, is required for everything but probes and metrics; without any, the listener requires none" reload:"live"`
	Admins []AdminAccount    `yaml:"admins" doc:"admins by name, each with a token and roles of its own" reload:"live"`
	TLS    TLS               `yaml:"tls" doc:"encryption of the admin listener" reload:"restart"`

	URL string `yaml:"url" doc:"where operators reach the admin listener, scheme and host only; links of alerts lead to its console. Without it, links lead approvers to My team, if public_url is set" reload:"live"`

	Console bool `yaml:"console" doc:"serve the console, pages for people, at /ui; beyond loopback it requires admin.tls" reload:"restart"`

	Issuers []AdminIssuer `yaml:"issuers" doc:"OpenID Connect issuers whose tokens are those of admins; give them an audience that no caller's token has" reload:"live"`
}

// Platform says where the platform is.
type Platform struct {
	BaseURL string `yaml:"base_url,required" doc:"the platform's REST address, scheme and host only; https, beyond loopback"`

	RunURL string `yaml:"run_url" doc:"the platform's run interface, likewise; empty serves none"`

	BalancedURL string `yaml:"lb_url" doc:"address of load-balanced endpoints, with {id} for the endpoint's id: https://{id}.run.example; empty serves none"`

	AllowInsecure bool `yaml:"allow_insecure" doc:"accept an http address beyond loopback: platform keys then travel unencrypted, so only inside a trusted network"`

	Connections int `yaml:"connections" doc:"open connections to each of these addresses, and to each load-balanced endpoint together; more calls wait for one. 0 has no bound: for a network whose address translator gives few ports" unit:"connections" zero:"no bound" reload:"live"`

	Proxy strictyaml.Secret `yaml:"proxy,plain" doc:"proxy on the way to the platform: http, https or socks5 URL, with name and password if it asks for them: then it is a secret, otherwise it may be written as it is; without it, HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment say it" reload:"live"`
}

// Run is the run interface.
type Run struct {
	Memory int64 `yaml:"memory" doc:"size of the request bodies that are under way at once, of all callers; more are refused with 503. Parsed, many small values take a few times that" unit:"bytes" reload:"restart"`

	Batches bool `yaml:"batches" doc:"serve batches, which the platform has in beta: jobs that are collected and then run together" reload:"live"`

	WebSockets int64 `yaml:"websockets" doc:"WebSockets to load-balanced endpoints that are open at once; more are refused with 503" unit:"connections" reload:"restart"`
}

// Redis says where the shared store is: either URL or Embedded is set.
type Redis struct {
	URL      strictyaml.Secret `yaml:"url,plain" doc:"redis://user:password@host:6379/0 of one server, redis+cluster://user:password@a:6379,b:6379 of a Cluster, redis+sentinel://user:password@a:26379,b:26379/NAME of the master NAME of Sentinels (sentinel_username and sentinel_password as parameters), or unix://user:password@/run/redis.sock?db=0 of a socket on this machine; rediss for redis speaks TLS (tls_ca, tls_cert, tls_key, tls_server_name as parameters), and pool_size bounds the connections to a server. A URL with a user or password is a secret; one without may be written as it is"`
	Embedded bool              `yaml:"embedded" doc:"count in this process, for one gateway, trials and tests: a restart forgets"`
	Prefix   Prefix            `yaml:"prefix" doc:"begins all keys; installations that share a Redis need different ones"`
}

// Timeouts bounds waiting.
type Timeouts struct {
	Connect  time.Duration `yaml:"connect" doc:"connecting to the platform" reload:"live"`
	Response time.Duration `yaml:"response" doc:"waiting for the platform's response headers" reload:"live"`
	Call     time.Duration `yaml:"call" doc:"a whole call that changes something, even when its caller has left" reload:"live"`
	Lookup   time.Duration `yaml:"lookup" doc:"looking for the resource of a create whose answer was lost, before its caller is answered; 0 answers at once" reload:"live"`
	Run      time.Duration `yaml:"run" doc:"waiting for each part of a response of the run interface, its headers first" reload:"live"`
	Body     time.Duration `yaml:"body" doc:"receiving a request body; of one of the run interface, each MiB" reload:"restart"`
	Write    time.Duration `yaml:"write" doc:"a caller's receiving one part of a response" reload:"restart"`
	Notice   time.Duration `yaml:"notice" doc:"serving on after readiness has failed, so that load balancers notice; 0 is 5s if envoy.xds has groups, and otherwise none" reload:"restart"`
	Drain    time.Duration `yaml:"drain" doc:"the whole stop, from the closing of the listeners on: requests, and all that runs beside them" reload:"restart"`
}

// Limits says how calls are counted.
type Limits struct {
	ratelimit.Config `yaml:",inline"`

	Recovery time.Duration `yaml:"recovery" doc:"how long at most nothing is admitted after Redis restarted or failed over, waiting for gateways to restore their memory; at least 1s"`

	Anonymous       ratelimit.AddressConfig  `yaml:"anonymous" doc:"slowing down addresses that send no valid key"`
	AnonymousExempt []netip.Prefix           `yaml:"anonymous_exempt" doc:"prefixes that are not slowed down, such as 10.0.0.5/32: load balancers that all callers come through"`
	FairShare       ratelimit.UpstreamConfig `yaml:"fair_share" doc:"sharing a platform account that is near its own limit among teams"`
}

// Legacy says how the retired interfaces are answered.
type Legacy struct {
	legacy.Config `yaml:",inline"`

	Keyless Keyless `yaml:"keyless" doc:"questions about the catalog without a key, as price collectors ask them by GraphQL"`
}

// UnnamedPlatform warns that nothing tells the platform's name. It concerns gateways with callers of the retired interfaces.
const UnnamedPlatform = "brand is not set, and platform.base_url does not contain the platform's name: strict clients of the retired interfaces look for it in is<Brand> of templates; set legacy.brand"

// Keyless bounds the questions that are answered without a key.
type Keyless struct {
	Org   string                  `yaml:"org" doc:"id of the organisation whose platform key answers them; empty answers none"`
	Limit ratelimit.AddressConfig `yaml:"limit" doc:"slowing down addresses that ask much; only answered questions count" reload:"restart"`
}

// Decisions says where decisions are logged and how long they are remembered.
type Decisions struct {
	policyconfig.DecisionLog `yaml:",inline"`

	Keep   int     `yaml:"keep" doc:"how many of the latest exchanges are kept in memory to be explained" unit:"exchanges"`
	Shared Archive `yaml:"shared" doc:"decisions kept in Redis, which any gateway explains"`
}

// Log is the log on standard error.
type Log struct {
	Level  LogLevel  `yaml:"level" doc:"least level written" reload:"live"`
	Format LogFormat `yaml:"format" doc:"form of a line"`
}

// LogLevel is a log level.
type LogLevel string

// Values lists the levels.
func (LogLevel) Values() []string { return []string{"debug", "info", "warn", "error"} }

// Level returns the level that a valid LogLevel names.
func (l LogLevel) Level() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l)); err != nil {
		return slog.LevelInfo // the configuration admits only known levels
	}
	return level
}

// LogFormat is the form of log lines.
type LogFormat string

// Values lists the formats.
func (LogFormat) Values() []string { return []string{"json", "text"} }

// Default returns the configuration a file is decoded over.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:8080",
		Console:     true,
		Admin:       Admin{Listen: "127.0.0.1:8081", Console: true},
		Envoy:       Envoy{XDS: XDS{PlatformCA: "/etc/ssl/certs/ca-certificates.crt"}},
		Redis:       Redis{Prefix: DefaultPrefix},
		Timeouts:    Timeouts{Connect: 5 * time.Second, Response: time.Minute, Call: 90 * time.Second, Lookup: 20 * time.Second, Run: 330 * time.Second, Body: 15 * time.Second, Write: 30 * time.Second, Drain: 20 * time.Second},
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
		Legacy: Legacy{Config: legacy.DefaultConfig(), Keyless: Keyless{
			Limit: ratelimit.AddressConfig{Rate: 300, Burst: 1000, Addresses: 65536, IPv6Prefix: 64},
		}},
		V1:      v1.DefaultConfig(),
		GraphQL: graphql.DefaultConfig(),
	}
}

// Directory builds the look-up of callers with keys, and with tokens and certificates.
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

// Validate reports the faults that no section can see alone. Paths are those
// of the file.
func (c *Config) Validate() error {
	var errs fault.Found
	orgs := make(map[string]bool)
	accounts := make(map[string]string) // credential to the organisation that has it
	for i := range c.Orgs {
		var found fault.Found
		o := &c.Orgs[i]
		for _, given := range [...]struct{ field, secret string }{{"credential", o.Credential.Reveal()}, {"run_credential", o.RunCredential.Reveal()}} {
			other, taken := accounts[given.secret]
			found.If(taken && other != o.ID, given.field, "organisation %q has the same credential: what one makes, the other could read and delete", other)
			if given.secret != "" {
				accounts[given.secret] = o.ID
			}
		}
		found.If(orgs[o.ID], "id", "organisation %q is already defined", o.ID)
		orgs[o.ID] = true
		if d := o.Idle.For; d > 0 && d < 2*c.Spend.Reconcile {
			found.Add("idle.for", "must be at least twice spend.reconcile, which is %s", c.Spend.Reconcile)
		}
		found.If(!o.Alerts.KeepSecret.IsZero() && c.PublicURL == "", "alerts.keep_secret", "needs public_url, where links lead")
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
	errs.If(c.Admin.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" || u.User != nil),
		"admin.url", "must be the scheme and host of an address, such as https://tollgate.example")
	errs = append(errs, fault.At("contact", checkContact(c.Contact)), c.sharedKeys())
	return errors.Join(append(errs, c.validateIssuers())...)
}

// maxContact bounds a contact line, in bytes: it is in every refusal.
const maxContact = 200

// checkContact reports a contact line that is too long or has control characters.
func checkContact(line string) error {
	if len(line) > maxContact || strings.ContainsFunc(line, unicode.IsControl) {
		return fmt.Errorf("must be one line of at most %d bytes", maxContact)
	}
	return nil
}

// DecisionPages is the address below which callers see the pages of their decisions, "" without My team or a public address.
func (c *Config) DecisionPages() string {
	if !c.Console || c.PublicURL == "" {
		return ""
	}
	return strings.TrimSuffix(c.PublicURL, "/") + "/tollgate/ui/decisions/"
}

// sharedKeys reports keys with the same secret: one key must mean one caller.
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
					errs.Add(fault.Index(fault.Index("orgs", i)+".keys", j), "is the platform key of organisation %q: its caller can pass by the gateway; make another key with tollgate keys create", org)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// NeedRestart returns the paths of the settings in which next differs and that a reload cannot put in force.
func (c *Config) NeedRestart(next *Config) []string { return strictyaml.NeedRestart(*c, *next) }

// Org returns an organisation by its id, nil if it is not configured.
func (c *Config) Org(id string) *Org {
	for i := range c.Orgs {
		if c.Orgs[i].ID == id {
			return &c.Orgs[i]
		}
	}
	return nil
}

// ServesReads reports whether reads of an organisation pass while the store of counts is away.
func (c *Config) ServesReads(o *Org) bool {
	return o.Failure.WithDefaults(c.Limits.Failure)[ratelimit.ClassRead] != ratelimit.FailClosed
}

// ShutdownNotice is how long a gateway serves on after it was told to stop.
func (c *Config) ShutdownNotice() time.Duration {
	if c.Timeouts.Notice == 0 && len(c.Envoy.XDS.Groups) > 0 {
		return defaultNotice
	}
	return c.Timeouts.Notice
}

// InstanceName returns the name of this process among the gateways that share a store, and in the log: the configured name, or a name after the
// machine.
func (c *Config) InstanceName() string {
	host, err := os.Hostname()
	if err != nil || ratelimit.CheckGateway(host) != nil {
		host = "tollgate"
	}
	return cmp.Or(c.Instance, host+"-"+rand.Text()[:8])
}

// AdvertisedAddr is where Envoys reach this gateway, as far as the configuration says
// it: an unspecified address means that of the route to Redis.
func (c *Config) AdvertisedAddr() netip.Addr {
	if c.Envoy.XDS.Advertise.IsValid() {
		return c.Envoy.XDS.Advertise
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	if host == "" {
		return netip.IPv6Unspecified()
	}
	addr, _ := netip.ParseAddr(host) // a name is none
	return addr
}

// AssignIssued gives each organisation the issuers and authorities that speak for it.
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

// Teams returns the IDs of the teams of each organisation.
func (c *Config) Teams() map[string][]string {
	teams := make(map[string][]string, len(c.Orgs))
	for i := range c.Orgs {
		for _, t := range c.Orgs[i].Teams {
			teams[c.Orgs[i].ID] = append(teams[c.Orgs[i].ID], t.ID)
		}
	}
	return teams
}

// validateIssuers reports the faults of issuers and authorities, on their own and
// beside the organisations.
func (c *Config) validateIssuers() error {
	var errs fault.Found
	ids, urls := make(map[string]bool), make(map[string]bool)
	issued := func(at, id string, m *identity.Mapping, limit *ratelimit.Limit, budget *ledger.Budget) {
		errs = append(errs, fault.At(at+".limits", limit.Validate()), fault.At(at+".budget", budget.Validate()), fault.At(at, c.validateMapping(m)))
		errs.If(ids[id], at+".id", "issuer %q is already defined", id)
		ids[id] = true
	}
	for n := range c.Issuers {
		i, at := &c.Issuers[n], fault.Index("issuers", n)
		errs = append(errs, fault.At(at, errors.Join(i.Validate(), i.Login.validate(i.Audiences))))
		issued(at, i.ID, &i.Mapping, &i.Limit, &i.Budget)
		errs.If(urls[i.URL], at+".url", "another issuer has the same")
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
				errs = append(errs, fault.Errorf(fault.Index(fault.Index("orgs", n)+".keys", m)+".id", "begins as the ids of the callers of issuer %q do", issuer))
			}
		}
	}
	return errors.Join(append(errs, fault.At("certificates", c.validateCertificates()))...)
}

// validateCertificates reports certificates that no listener asks for.
func (c *Config) validateCertificates() error {
	switch n := len(c.Certificates.Authorities); {
	case n == 0 && c.Certificates.Required:
		return fault.Errorf("required", "needs authorities")
	case n > 0 && c.TLS.Certificate.IsZero():
		return fault.Errorf("authorities", "need tls, without which the data listener asks for no certificates")
	case c.Certificates.Required && c.Envoy.Listen != "":
		return fault.Errorf("required", "cannot be held through envoy.listen: an Envoy does not tell what certificate its caller has")
	}
	return nil
}

// validateMapping reports organisations, teams and labels that there are not.
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
			errs.If(slices.Contains(m.Orgs, o.ID) && !slices.ContainsFunc(o.Labels, func(r ledger.LabelRule) bool { return r.Name == name }), fault.Key("labels", name), "organisation %q has no label %q", o.ID, name)
		}
	}
	return errors.Join(errs...)
}
