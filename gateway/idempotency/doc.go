// Package idempotency ensures that a call is carried out only once. If the response to a call that creates a resource is lost, it
// determines the result of the call.
//
// Its stages are [Deduplicate], which answers repeated requests, and [RecoverLost], which searches for a created resource when the response
// to the call was lost. Both use the interface filter.Intents, which is implemented by [Deduplicator]. The stage money.Reserve uses it too,
// to record an intent together with the reservation. The ledger's reconciler assigns resources through [Tracker.ClaimFound].
//
// A [Tracker] holds the intents that a gateway is executing. It reports to requests on this gateway, and through the store to other
// gateways, whether the caller of an intent is still connected. It retries writing the end of an intent until the store has accepted it. It
// also renews the lease that shows other gateways that this gateway is alive.
//
// Redis holds intents and stored responses, for a day after their last change, and the leases of gateways. Memory holds the intents of this
// gateway's calls, updates that the store has not accepted yet, and recent intents. The gateway restores lost data from the recent intents.
// The types Intent, IntentUpdate, DedupKeys and Pending are in package filter. Begin reading with [Deduplicator].
//
// Words: requests are equal if they have the same caller, operation and content; the digest of the content is their fingerprint. Intents
// are lookalikes if their resources have the same kind, name and shape, so that a resource found at the platform can belong to any of them.
// An abandoned intent has a resource but no caller, because the caller disconnected. To adopt is to take over the resource of such an
// intent.
package idempotency
