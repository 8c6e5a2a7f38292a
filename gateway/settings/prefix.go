package settings

import (
	"cmp"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Prefix is the prefix of all keys in Redis. Installations that share a Redis use different prefixes. The zero Prefix means DefaultPrefix.
type Prefix string

// DefaultPrefix is the Prefix of an installation with a Redis of its own.
const DefaultPrefix Prefix = "tollgate:"

// Validate returns an error for a prefix that would distribute the keys of one organisation over several slots of a Redis Cluster, see
// ratelimit.CheckID.
func (p Prefix) Validate() error { return ratelimit.CheckID(p.Limits()) }

// Legacy returns the prefix of the data stored for the retired interfaces.
func (p Prefix) Legacy() string { return p.Join("legacy") }

// Limits returns the prefix of the rate limiter's keys.
func (p Prefix) Limits() string { return p.Join("rl:") }

// Gateways returns the key of the status reports of running gateways.
func (p Prefix) Gateways() string { return p.Limits() + "running" }

// Usage returns the prefix of the usage records of the retired interfaces.
func (p Prefix) Usage() string { return p.Join("usage") }

// Spend returns the prefix of the ledger's keys.
func (p Prefix) Spend() string { return p.Join("ledger:") }

// Intents returns the prefix of pending request records (intents), which prevent calls from being executed twice.
func (p Prefix) Intents() string { return p.Join("intents:") }

// OldLedger returns the prefix of ledgers in a format that this version no longer reads.
func (p Prefix) OldLedger() string { return p.Join("spend:") }

// Approvals returns the prefix of approval requests.
func (p Prefix) Approvals() string { return p.Join("approvals:") }

// Decisions returns the prefix of stored explanations of decisions.
func (p Prefix) Decisions() string { return p.Join("decisions:") }

// Keys returns the prefix of caller keys created at run time.
func (p Prefix) Keys() string { return p.Join("keys:") }

// Tokens returns the prefix of revoked issuer tokens. It cannot collide with the keys of an organisation, which have a brace at that
// position.
func (p Prefix) Tokens() string { return p.Join("keys:tokens:") }

// Sessions returns the prefix of console sessions. It cannot collide with the keys of an organisation, see Tokens.
func (p Prefix) Sessions() string { return p.Join("keys:sessions:") }

// Join returns the prefix for one kind of data.
func (p Prefix) Join(sort string) string { return string(cmp.Or(p, DefaultPrefix)) + sort }
