// Package ratelimit counts calls in fixed windows of a minute, an hour and a
// day, shared by every gateway that uses the same store, and says whether one
// more call fits.
//
// A [Take] names an organisation and the scopes a call belongs to (its key, its
// team, the organisation). The call is admitted only if every window of every
// scope has room; then all of them are charged in one atomic step. A refused
// call costs nothing.
//
// # Invariants
//
//   - Over all gateways, the calls admitted to a window never exceed its quota.
//     Leased permits are charged before they are spent, an ambiguous reply
//     counts as spent, and nothing is ever charged twice. The stated
//     exceptions are the failure policies open and local (see [Failure]), which
//     an operator chooses per class of call.
//   - Windows are aligned to UTC and the store's clock decides them. A clock
//     that steps back never reopens a window.
//   - Quotas travel with each call: a changed quota holds for the running window
//     from the next call on.
//
// # Use
//
//	store, err := redisstore.New(client, redisstore.Config{})
//	limiter, err := ratelimit.New(ratelimit.DefaultConfig(), ratelimit.Deps{Store: store})
//	go limiter.Run(ctx)
//	d, err := limiter.Take(ctx, ratelimit.Take{
//		Org:    "org_a",
//		Scopes: []ratelimit.Scope{{Kind: ratelimit.KindKey, ID: "key_1", Limit: ratelimit.Limit{Minute: 60}}},
//	})
//	d.WriteHeaders(w.Header())
//
// The package imports nothing of the gateway: identity, problems and routing
// are the caller's business.
package ratelimit
