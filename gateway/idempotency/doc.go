// Package idempotency ensures that a call is carried out only once, and that a create whose response was lost still has a known result.
//
// Its stages are [Deduplicate], which answers repeated requests, and [RecoverLost], which searches for a resource when the response to its
// create was lost. Both use the port filter.Intents, implemented by [Deduplicator], which the stage money.Reserve also uses: it records an
// intent together with the reservation. The ledger's reconciler assigns resources through [Tracker.ClaimFound].
//
// A [Tracker] holds the intents that a gateway is executing. It reports to requests here, and through the store to other gateways, whether
// the caller of an intent is still connected; it writes the ends of intents until the store has accepted them; and it renews the lease that
// shows other gateways that this one is alive.
//
// Intents and stored responses are in Redis, for a day after their last change, and so are the leases of gateways. In memory are the
// intents of this gateway's calls, ends that the store has not accepted, and recent intents, from which a gateway restores lost data. The
// types Intent, IntentUpdate, DedupKeys and Pending are in package filter. Begin reading with [Deduplicator].
//
// Words: requests are equal if they have the same caller, operation and content; the digest of the content is their fingerprint. Intents
// are lookalikes if their resources have the same kind, name and shape, so that a resource found at the platform can belong to any of them.
// An abandoned intent has a resource but no caller, because the caller disconnected. To adopt is to take over the resource of such an
// intent.
package idempotency
