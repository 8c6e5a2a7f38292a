package config

import (
	"time"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/translate/brownout"
	"github.com/tollgate-dev/tollgate/translate/graphql"
	v1 "github.com/tollgate-dev/tollgate/translate/v1"
)

// File is the configuration as it is written. Start from Default.
type File struct {
	Listen   string   `yaml:"listen" doc:"address of the data listener; a change takes a restart"`
	TLS      TLS      `yaml:"tls" doc:"encryption of the data listener; without it, only what stands before the gateway may reach it"`
	Admin    Admin    `yaml:"admin" doc:"the operators' listener"`
	Envoy    Envoy    `yaml:"envoy" doc:"the door for Envoy's ext_proc filter"`
	Platform Platform `yaml:"platform" doc:"the platform calls are sent to"`
	Redis    Redis    `yaml:"redis" doc:"the store all gateways share; a change takes a restart"`
	Timeouts Timeouts `yaml:"timeouts" doc:"bounds in time"`

	Connections Connections `yaml:"connections" doc:"bounds on connections; a change takes a restart"`

	Limits    Limits           `yaml:"limits" doc:"how calls are counted; a change takes a restart"`
	Policies  policies.Limits  `yaml:"policies" doc:"what evaluations of policies may use"`
	Decisions Decisions        `yaml:"decisions" doc:"what becomes of decisions; a change takes a restart"`
	Catalog   catalog.Config   `yaml:"catalog" doc:"how price lists are kept; a change takes a restart"`
	Telemetry telemetry.Config `yaml:"telemetry" doc:"traces; a change takes a restart"`
	Log       Log              `yaml:"log" doc:"the log on standard error; a change takes a restart"`
	V1        v1.Config        `yaml:"v1" doc:"settings of the v1 dialect"`
	GraphQL   graphql.Config   `yaml:"graphql" doc:"settings of the GraphQL dialect"`

	AnonymousCatalog string `yaml:"anonymous_catalog" doc:"organisation whose credential answers catalog questions of GraphQL callers without a key, as price collectors are; empty answers none"`

	Orgs []Org `yaml:"orgs,required" doc:"the organisations served"`
}

// Connections bounds what callers may hold open.
type Connections struct {
	Total      int `yaml:"total" doc:"connections of the data listener, of all callers together; 0 is no bound"`
	PerAddress int `yaml:"per_address" doc:"those from one address, IPv6 by /64 network; addresses in limits.anonymous_exempt have no such bound; 0 is no bound"`
}

// TLS is the encryption of a listener; the zero TLS is none. Turning it on or off
// takes a restart, another certificate does not.
type TLS struct {
	Certificate strictyaml.Secret `yaml:"certificate" doc:"certificate chain in PEM, the listener's own first"`
	Key         strictyaml.Secret `yaml:"key" doc:"its private key in PEM"`
}

// Admin is the operators' listener.
type Admin struct {
	Listen string            `yaml:"listen" doc:"address of the admin listener; beyond loopback it needs a token"`
	Token  strictyaml.Secret `yaml:"token" doc:"token asked for by everything but probes and metrics; at least 16 characters that cannot be guessed"`
	TLS    TLS               `yaml:"tls" doc:"encryption of the admin listener"`
}

// Envoy is the Envoy door.
type Envoy struct {
	Listen string `yaml:"listen" doc:"address of the ext_proc server, on loopback; empty opens none"`
}

// Platform says where the platform is.
type Platform struct {
	BaseURL string `yaml:"base_url,required" doc:"the platform's REST address, scheme and host only; https, beyond loopback"`

	AllowInsecure bool `yaml:"allow_insecure" doc:"take an http address beyond loopback: platform keys then travel unencrypted, so only inside a network that is trusted"`
}

// Redis says where the shared store is: either URL or Embedded is set.
type Redis struct {
	URL      strictyaml.Secret `yaml:"url" doc:"redis:// or rediss:// URL"`
	Embedded bool              `yaml:"embedded" doc:"count in this process; for one gateway, trials and tests: a restart forgets"`
	Prefix   gateway.Prefix    `yaml:"prefix" doc:"begins all keys; installations that share a Redis need different ones"`
}

// Timeouts bounds waiting.
type Timeouts struct {
	Connect  time.Duration `yaml:"connect" doc:"connecting to the platform"`
	Response time.Duration `yaml:"response" doc:"waiting for the platform's response headers"`
	Call     time.Duration `yaml:"call" doc:"a whole call that changes something, even when its caller has left"`
	Body     time.Duration `yaml:"body" doc:"receiving a request body; a change takes a restart"`
	Write    time.Duration `yaml:"write" doc:"a caller's receiving one part of an answer; a change takes a restart"`
	Notice   time.Duration `yaml:"notice" doc:"going on serving after readiness has failed, so that load balancers notice; a change takes a restart"`
	Drain    time.Duration `yaml:"drain" doc:"letting requests finish when stopping; a change takes a restart"`
}

// Limits says how calls are counted; the quotas are the organisations'.
type Limits struct {
	ratelimit.Config `yaml:",inline"`

	Recovery time.Duration `yaml:"recovery" doc:"how long at most nothing is admitted after Redis restarted or failed over, waiting for gateways to restore what they remember; at least 1s, or negative to trust a new server at once"`

	Anonymous       ratelimit.AddressConfig  `yaml:"anonymous" doc:"slowing down addresses that send no valid key"`
	AnonymousExempt []string                 `yaml:"anonymous_exempt" doc:"prefixes that are not slowed down, such as 10.0.0.5/32: load balancers that all callers come through"`
	FairShare       ratelimit.UpstreamConfig `yaml:"fair_share" doc:"sharing a platform account that is near its own limit among teams"`
}

// Decisions says where decisions are logged and how long they are remembered.
type Decisions struct {
	decisionlog.Config `yaml:",inline"`

	Keep int `yaml:"keep" doc:"how many of the latest exchanges are kept in memory to be explained"`
}

// Log is the log on standard error.
type Log struct {
	Level  Level  `yaml:"level" doc:"least level written"`
	Format Format `yaml:"format" doc:"form of a line"`
}

// Level is a log level.
type Level string

// Values lists the levels.
func (Level) Values() []string { return []string{"debug", "info", "warn", "error"} }

// Format is the form of log lines.
type Format string

// Values lists the formats.
func (Format) Values() []string { return []string{"json", "text"} }

// Org is one organisation.
type Org struct {
	ID         string               `yaml:"id,required" doc:"short name, used in keys of the store and in logs"`
	Credential strictyaml.Secret    `yaml:"credential,required" doc:"the organisation's platform key"`
	Limits     ratelimit.Limit      `yaml:"limits" doc:"quotas all its callers share; absent windows are not limited"`
	Failure    Failure              `yaml:"failure" doc:"what happens to its callers while the store is away, instead of limits.failure"`
	Classes    []Class              `yaml:"classes" doc:"groups of v2 operations with quotas of their own"`
	Brownouts  []brownout.Config    `yaml:"brownouts" doc:"windows in which its calls of the retired interfaces are refused"`
	Policies   []policies.Entry     `yaml:"policies" doc:"policies in force, in any order; account_changes is, with its defaults, even when not listed"`
	Rego       string               `yaml:"rego" doc:"directory with the organisation's own policies"`
	Bundle     *policies.Bundle     `yaml:"bundle" doc:"OPA bundle with the organisation's own policies, instead of rego"`
	Exceptions []policies.Exception `yaml:"exceptions" doc:"what somebody may do in spite of a policy, until when, and who allowed it"`
	Teams      []Team               `yaml:"teams" doc:"its teams"`
	Keys       []Key                `yaml:"keys" doc:"its callers' keys"`
}

// Team is a part of an organisation.
type Team struct {
	ID     string          `yaml:"id,required" doc:"short name, unique in the organisation"`
	Limits ratelimit.Limit `yaml:"limits" doc:"quotas its callers share"`
	Weight int64           `yaml:"weight" doc:"its share of the platform account, see limits.fair_share; 0 is 1"`
}

// Failure overrides the failure policies of the limits.
type Failure struct {
	Read  ratelimit.Failure `yaml:"read" doc:"calls that change nothing: closed, local or open"`
	Write ratelimit.Failure `yaml:"write" doc:"calls that change or cost something: closed, local or open"`
}

// Class is a group of v2 operations with quotas of their own.
type Class struct {
	ID         string          `yaml:"id,required" doc:"short name, unique in the organisation"`
	Operations []string        `yaml:"operations,required" doc:"operationIds of the v2 API; calls of v1 and GraphQL count as what they become"`
	Per        Per             `yaml:"per" doc:"whose calls share the quota"`
	Cost       int64           `yaml:"cost" doc:"what one call takes; 0 is 1"`
	Limits     ratelimit.Limit `yaml:"limits,required" doc:"quotas of the class"`
}

// Per says whose calls share a quota; empty is key.
type Per string

// Values lists what a quota can be shared by.
func (Per) Values() []string { return []string{"key", "team", "org"} }

// Key is one key of a caller.
type Key struct {
	ID     string          `yaml:"id,required" doc:"short name, unique in the organisation; logs show it, never the key"`
	Team   string          `yaml:"team" doc:"team the caller belongs to"`
	SHA256 string          `yaml:"sha256,required" doc:"SHA-256 of the key, 64 hexadecimal digits"`
	Roles  []identity.Role `yaml:"roles" doc:"what the caller may be; policies read it"`
	Limits ratelimit.Limit `yaml:"limits" doc:"the key's own quotas"`
	Exempt bool            `yaml:"exempt" doc:"not limited, and told of no limits"`
}

// Default returns the configuration a file is decoded over.
func Default() File {
	return File{
		Listen:      "127.0.0.1:8080",
		Redis:       Redis{Prefix: gateway.DefaultPrefix},
		Connections: Connections{Total: 10000, PerAddress: 500},
		Admin:       Admin{Listen: "127.0.0.1:8081"},
		Timeouts:    Timeouts{Connect: 5 * time.Second, Response: time.Minute, Call: 90 * time.Second, Body: 15 * time.Second, Write: 30 * time.Second, Drain: 20 * time.Second},
		Limits: Limits{
			Config: ratelimit.DefaultConfig(), Recovery: redisstore.DefaultRecovery,
			Anonymous: ratelimit.DefaultAddressConfig(), FairShare: ratelimit.DefaultUpstreamConfig(),
		},
		Policies:  policies.DefaultLimits(),
		Decisions: Decisions{Config: decisionlog.DefaultConfig(), Keep: 1000},
		Catalog:   catalog.DefaultConfig(),
		Telemetry: telemetry.Config{SampleRatio: 0.01},
		Log:       Log{Level: "info", Format: "json"},
		V1:        v1.DefaultConfig(),
		GraphQL:   graphql.DefaultConfig(),
	}
}

// Schema returns the JSON Schema of the file, for editors.
func Schema() ([]byte, error) {
	return strictyaml.Schema(Default(), strictyaml.SchemaOptions{Title: "tollgate configuration"})
}
