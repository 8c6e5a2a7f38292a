// Package idempotency sees to it that a call is carried out once.
//
// Its stages of the chain are [Deduplicate], which answers the repeat of a request, and
// [RecoverLost], which searches for a resource whose create had no answer. Both act through the
// port that is a [Deduplicator]. [Tracker] keeps the
// intents that a gateway has in hand. It says whether the caller of an intent still
// waits, to requests here and, asked through the store, to other gateways; it writes
// ended intents until the store has taken them; and it holds the lease by which other
// gateways know that this one lives. Package intent has the data.
package idempotency
