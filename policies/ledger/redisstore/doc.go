// Package redisstore keeps the ledger in Redis: one script for each step, all keys
// of an organisation in one slot.
//
// It notices a store that was emptied, or that went back to an old state: each
// change of a ledger has a number, and a gateway says with each step which it has
// seen last. Nothing that raises cost is admitted then until the ledger was rebuilt.
package redisstore
