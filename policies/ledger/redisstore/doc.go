// Package redisstore stores the ledger in Redis. Each step is one script, and all keys of an organisation are in one slot.
//
// The store detects that Redis was emptied or has returned to an older state. Every change of a ledger is numbered, and each gateway sends
// the latest number that it has seen with every step. After a loss, no call that raises cost is admitted until the ledger has been rebuilt.
package redisstore
