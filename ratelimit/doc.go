// Package ratelimit counts calls in fixed windows of a minute, an hour and a day, and decides whether another call fits. Gateways that use
// the same store share the counts.
//
// A [Take] names an organisation and the scopes of a call (its key, its team, the organisation). The call is admitted only if every window
// of every scope has room; then all of them are charged in one atomic step. A refused call costs nothing.
//
// [Limiter] is the entry point. Two other types limit calls on one gateway only: [AddressLimiter] limits attempts without a valid
// credential by network address, and [Upstream] divides the platform's own rate limits among teams.
//
// The counts are in the [Store], which is Redis in production. A Limiter keeps the latest known counts of scopes, its leases and its debts
// in memory. AddressLimiter and Upstream keep their whole state in memory.
//
// # Words
//
//   - A permit is the permission for one unit of a window. A lease is a block of permits that a gateway has charged in the store and not
//     spent yet ([ModeLeased]).
//   - A debt is the charge for calls that a gateway admitted while the store was down ([FailLocal]); the store is charged later.
//   - A generation is the time between two resets of a scope by operators.
//   - A pause follows a restart of the store. During a pause, the store admits no calls, because gateways first restore the counts that it
//     has lost.
//
// # Invariants
//
//   - Over all gateways, the calls admitted to a window never exceed its quota. Leased permits are charged before they are spent, an
//     ambiguous reply counts as spent, and nothing is charged twice. The exceptions are the failure policies [FailOpen] and [FailLocal],
//     which an operator chooses for each class of calls.
//   - Windows are aligned to UTC and follow the store's clock. A clock that steps back never reopens a window.
//   - Quotas come with each call: a changed quota applies to the current window from the next call on.
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
// The package does not depend on the gateway. The caller is responsible for identity, problem responses and routing.
package ratelimit
