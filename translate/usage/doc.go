// Package usage counts the calls of retired interfaces: their callers, programs,
// operations and results, and the fields that v2 has no place for. From it operators see
// who must still migrate.
//
// A Recorder sums calls up in memory and writes the sums every few seconds, so
// a request never waits for the store and a busy script costs one write, not
// one for each call. Store keeps the sums in Redis, shared by all gateways, for
// 400 days after a caller was last seen.
//
// Invariants: the kept rows are bounded for all calls (names of programs are cut to a
// product token, and only so many different ones are told apart in an organisation); a
// batch that was written twice is counted once; what must be dropped is counted in the
// metric tollgate.legacy.dropped.
//
//	r, err := usage.NewRecorder(usage.Deps{Writer: usage.NewStore(client, "tollgate:usage"), ...})
//	...
//	r.Note(ctx, usage.Call{Org: "acme", Key: "ann", Dialect: "v1", Operations: []string{"listPods"}, Status: 200})
package usage
