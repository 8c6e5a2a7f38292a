// Package usage counts calls of the legacy APIs by caller, program, operation and result, and the fields that v2 has no
// equivalent for. Operators use the counts to find callers that still have to migrate.
//
// A Recorder adds up calls in memory and writes the totals every few seconds. Requests therefore never wait for the store, and a busy
// client does not cause a write for each call. A Store keeps the totals in Redis, shared by all gateways, for 400 days after a caller's
// last call.
//
// Invariants: the number of stored rows is bounded, because program names are reduced to a product token and an organisation has a limited
// number of distinct programs. A batch that is written twice is counted once. Dropped calls are counted in the metric
// tollgate.legacy.dropped.
//
//	r, err := usage.NewRecorder(usage.Deps{Writer: usage.NewStore(client, "tollgate:usage"), ...})
//	...
//	r.Record(ctx, usage.Call{Org: "acme", Key: "ann", Dialect: "v1", Operations: []string{"listPods"}, Status: 200})
package usage
