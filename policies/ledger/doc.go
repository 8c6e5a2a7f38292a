// Package ledger is the ledger: it keeps the costs of an organisation's resources
// and their number within its budgets.
//
// Every change is two steps, as in a two-phase transfer. Before the platform is
// asked, the worst case of the call is reserved against every budget that applies;
// when the platform's answer is known, the reservation is committed under the
// resource's id or released. A reservation whose call may have been carried out
// stays, as an open hold, until the reconciler finds out. So the resources that
// exist and those that may exist never take more than a budget, under any race or
// failure.
//
// Rates are micro-dollars per hour and amounts micro-dollars, both integers. A
// [Store] makes each step atomic; package redisstore is the one gateways share,
// [Memory] is the reference for it and serves dry runs.
//
// [New] makes the parts of a gateway's ledger in the order in which they depend on each other. What they need from outside are a
// [Platform], a [Gateway] and receivers of [Events].
package ledger
