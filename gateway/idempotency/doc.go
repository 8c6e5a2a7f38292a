// Package idempotency ensures that a call is carried out only once.
//
// Its stages are [Deduplicate], which answers repeated requests, and [RecoverLost], which searches for a resource when the response to its
// create was lost. Both use the port implemented by [Deduplicator]. A [Tracker] holds the intents that a gateway is executing. It reports
// to requests here, and through the store to other gateways, whether the caller of an intent is still connected; it writes the ends of
// intents until the store has accepted them; and it renews the lease that shows other gateways that this one is alive. The types are in
// package filter.
package idempotency
