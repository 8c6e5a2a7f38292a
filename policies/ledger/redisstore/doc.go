// Package redisstore stores the ledger in Redis. Each step is one script, and all keys of an organisation are in one slot.
//
// It detects that Redis was emptied or has returned to an older state: every change of a ledger is numbered, and each gateway sends the
// latest number it has seen with every step. After a loss, no call that raises cost is admitted until the ledger has been rebuilt.
package redisstore
