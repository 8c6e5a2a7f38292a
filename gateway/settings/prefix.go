package settings

import (
	"cmp"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Prefix is the prefix of all keys in Redis. Installations that share a Redis must use different prefixes. The zero Prefix means
// DefaultPrefix.
type Prefix string

// DefaultPrefix is the Prefix of an installation that does not share its Redis.
const DefaultPrefix Prefix = "tollgate:"

// Validate returns an error if the prefix contains characters that [ratelimit.CheckID] does not permit, such as braces. With braces, a
// Redis Cluster would distribute the keys of one organisation over several slots.
func (p Prefix) Validate() error { return ratelimit.CheckID(p.Limits()) }

// Legacy returns the prefix of the data stored for the retired interfaces.
func (p Prefix) Legacy() string { return p.Join("legacy") }

// Limits returns the prefix of the rate limiter's keys.
func (p Prefix) Limits() string { return p.Join("rl:") }

// Gateways returns the key of the status reports of running gateways.
func (p Prefix) Gateways() string { return p.Limits() + "running" }

// Usage returns the key prefix of the records that count calls to the legacy APIs.
func (p Prefix) Usage() string { return p.Join("usage") }

// Spend returns the prefix of the ledger's keys.
func (p Prefix) Spend() string { return p.Join("ledger:") }

// Intents returns the prefix of pending request records (intents), which prevent calls from being executed twice.
func (p Prefix) Intents() string { return p.Join("intents:") }

// OldLedger returns the prefix of ledgers in an old format, which this version cannot read.
func (p Prefix) OldLedger() string { return p.Join("spend:") }

// Approvals returns the prefix of approval requests.
func (p Prefix) Approvals() string { return p.Join("approvals:") }

// Decisions returns the prefix of stored explanations of decisions.
func (p Prefix) Decisions() string { return p.Join("decisions:") }

// Keys returns the prefix of caller keys created at run time.
func (p Prefix) Keys() string { return p.Join("keys:") }

// Tokens returns the prefix of the records of revoked issuer tokens. It begins with the prefix of Keys, but its keys cannot collide with
// the keys of an organisation, which have a brace after the prefix of Keys.
func (p Prefix) Tokens() string { return p.Join("keys:tokens:") }

// Sessions returns the key prefix of console sessions. Keys with this prefix cannot collide with keys of an organisation; see Tokens.
func (p Prefix) Sessions() string { return p.Join("keys:sessions:") }

// Join returns the prefix with sort, the name of a kind of data, appended.
func (p Prefix) Join(sort string) string { return string(cmp.Or(p, DefaultPrefix)) + sort }
