package settings

import (
	"cmp"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Prefix begins the keys a gateway has in its store. Installations that share a
// Redis have different ones. The zero Prefix is DefaultPrefix.
type Prefix string

// DefaultPrefix is the Prefix of an installation that has its Redis to itself.
const DefaultPrefix Prefix = "tollgate:"

// Validate refuses a prefix that would spread the keys of an organisation over a Redis
// Cluster, see ratelimit.CheckID.
func (p Prefix) Validate() error { return ratelimit.CheckID(p.Limits()) }

// Legacy begins the keys of the retired interfaces' memory.
func (p Prefix) Legacy() string { return p.Join("legacy") }

// Limits begins the keys of the limiter.
func (p Prefix) Limits() string { return p.Join("rl:") }

// Gateways is the key of the running gateways' reports of themselves.
func (p Prefix) Gateways() string { return p.Limits() + "running" }

// Usage begins the keys of the callers of the retired interfaces.
func (p Prefix) Usage() string { return p.Join("usage") }

// Spend begins the keys of the ledger.
func (p Prefix) Spend() string { return p.Join("ledger:") }

// Intents begins the keys of intents: calls that must not be made twice.
func (p Prefix) Intents() string { return p.Join("intents:") }

// OldLedger begins the keys of ledgers in a format that this version does not read.
func (p Prefix) OldLedger() string { return p.Join("spend:") }

// Approvals begins the keys of requests for approval.
func (p Prefix) Approvals() string { return p.Join("approvals:") }

// Decisions begins the keys of explanations of decisions.
func (p Prefix) Decisions() string { return p.Join("decisions:") }

// Keys begins the keys of callers' keys that were made at run time.
func (p Prefix) Keys() string { return p.Join("keys:") }

// Tokens begins the keys of tokens of issuers that were revoked. No organisation's keys
// begin so: those have a brace there.
func (p Prefix) Tokens() string { return p.Join("keys:tokens:") }

// Sessions begins the keys of sessions of the console. No organisation's keys begin so, see Tokens.
func (p Prefix) Sessions() string { return p.Join("keys:sessions:") }

// Join begins the keys of a sort.
func (p Prefix) Join(sort string) string { return string(cmp.Or(p, DefaultPrefix)) + sort }
