package platform

import (
	"cmp"
	"log/slog"
	"time"
)

// DefaultKey is the API key of the account an emulator has when its options
// name none.
const DefaultKey = "platform-test-key"

// DefaultBalance is what an account starts with unless told otherwise, in USD.
const DefaultBalance = 1000.0

// DefaultKeepCalls is how many calls are remembered unless told otherwise.
const DefaultKeepCalls = 10_000

// Options says what an emulator is made of. The zero value is usable: real
// time, the default catalog, one account with [DefaultKey].
type Options struct {
	// Accounts are the customers the emulator knows. None means one, with id
	// "default" and key DefaultKey. Ids and keys must be unique.
	Accounts []Account

	// Clock is the emulator's time; nil follows real time.
	Clock *Clock

	// Catalog is what can be rented, where and for how much; nil is
	// DefaultCatalog(). The emulator keeps a copy.
	Catalog *Catalog

	// OpenAPI is the document served at GET /v2/openapi.json, byte for byte.
	// Without one that path answers 404.
	OpenAPI []byte

	// Strict refuses with 400 what the real platform lets pass although the
	// caller hardly meant it: unknown and repeated query parameters, a body
	// where the operation has none, a body that is not declared to be JSON; with
	// 422, a body that its published description does not have.
	// Under RunT a call to no known route also fails the test.
	Strict bool

	// PageSize is how many records a page of a list has if its request has no limit: zero is
	// 1000, as at the platform. Negative is the platform before its lists were paged: lists
	// are whole, and cursor and limit have no effect.
	PageSize int

	// SandboxEgress is a platform whose sandboxes take egressMode and egressAllowlist, and
	// show them. Without it both are unknown fields, as at the platform.
	SandboxEgress bool

	// Timing is how long resources take to come up, on the emulator's clock.
	Timing Timing

	// DataFile keeps the state in this file over restarts; empty keeps it in
	// memory only.
	DataFile string

	// RunURL is the base address of the run interface as it appears in the
	// request URLs of serverless endpoints. Empty is the address at which each
	// call reached the REST API, which suits Server.CombinedHandler.
	RunURL string

	// KeepCalls is how many calls are remembered for Calls, the newest first to
	// stay: zero is DefaultKeepCalls, negative remembers none.
	KeepCalls int

	// Seed makes identifiers and chance differ between emulators. The same seed
	// and the same calls give the same identifiers.
	Seed uint64

	// Worker runs the functions that endpoints are sent; the zero value runs none.
	Worker Worker

	// Logger gets one debug record per call and the emulator's own faults; nil
	// discards them.
	Logger *slog.Logger
}

// Timing is how long resources take to come up, on the emulator's clock. Zero
// fields take the default written beside them; a negative field is no time.
type Timing struct {
	// Provision is how long a new pod is PROVISIONING, and a new sandbox CREATING. Default 2s.
	Provision time.Duration
	// Boot is how long a pod is STARTING until it is RUNNING, and a sandbox RUNNING until its
	// container is up. Default 2s.
	Boot time.Duration
	// ColdStart is how long a serverless worker is INITIALIZING. Default 5s.
	ColdStart time.Duration
	// Build is how long a build of an endpoint is in each of its states. Default 30s.
	Build time.Duration
	// Job is how long a worker takes over a job unless the job's input says
	// otherwise. Default 1s.
	Job time.Duration
	// Token is how long a language model takes over a word that it streams, unless
	// the clock stands still. Default 20ms.
	Token time.Duration
}

func (t Timing) withDefaults() Timing {
	set := func(d, otherwise time.Duration) time.Duration { return max(cmp.Or(d, otherwise), 0) }
	return Timing{
		Provision: set(t.Provision, 2*time.Second),
		Boot:      set(t.Boot, 2*time.Second),
		ColdStart: set(t.ColdStart, 5*time.Second),
		Build:     set(t.Build, 30*time.Second),
		Job:       set(t.Job, time.Second),
		Token:     set(t.Token, 20*time.Millisecond),
	}
}

// Account is one customer: what it owns is invisible to every other.
type Account struct {
	// ID names the account on the control interface and in records.
	ID string `json:"id"`
	// Key is an API key with full access; further ones go to Keys.
	Key string `json:"key"`
	// Keys are API keys with an access of their own.
	Keys []Key `json:"keys"`
	// Balance is the money at the start, in USD: zero is DefaultBalance, a
	// negative value is an account with nothing left.
	Balance float64 `json:"balance"`
	// Quota is the account's own request quota.
	Quota Quota `json:"quota"`
	// Exempt accounts are not counted and get no RateLimit headers.
	Exempt bool `json:"exempt"`
	// Clouds are the clouds it may use (SECURE, COMMUNITY); none means both.
	// The others are refused with 403.
	Clouds []string `json:"clouds"`
	// DeniedGPUs are GPU type ids it may not use: 403.
	DeniedGPUs []string `json:"deniedGpus"`
	// SSHKeys are the public keys registered at the start.
	SSHKeys []string `json:"sshKeys"`
	// WorkerQuota bounds the sum of workers.max over its endpoints; zero is 30.
	WorkerQuota int `json:"workerQuota"`
	// MaxSandboxIdle and MaxSandboxLifetime clamp the clocks of its sandboxes, in seconds;
	// zero is the platform's 7200 and 86400, which no account exceeds.
	MaxSandboxIdle     int64 `json:"maxSandboxIdle"`
	MaxSandboxLifetime int64 `json:"maxSandboxLifetime"`
}

// Access is what an API key may do.
type Access string

// The kinds of access. The zero value is ReadWrite.
const (
	ReadWrite Access = ""
	ReadOnly  Access = "read-only" // changing anything is 403
	NoAccess  Access = "none"      // everything is 403
	Disabled  Access = "disabled"  // the key is not accepted: 401
)

// Key is one API key of an account.
type Key struct {
	Secret string `json:"secret"`
	Access Access `json:"access"`
}

// Quota is how many requests an account may make per window, all windows
// aligned to UTC. Zero fields take the default written beside them.
type Quota struct {
	Minute int `json:"minute"` // default 6000
	Hour   int `json:"hour"`   // default 300000
	Day    int `json:"day"`    // default 5000000
}

func (q Quota) withDefaults() Quota {
	return Quota{Minute: cmp.Or(q.Minute, 6_000), Hour: cmp.Or(q.Hour, 300_000), Day: cmp.Or(q.Day, 5_000_000)}
}
