// Package ledger implements the spending ledger. It keeps the cost and the number of an organisation's resources within its budgets.
//
// Every change takes two steps, as in a two-phase transfer. Before a call is sent to the platform, its worst case is reserved against
// every budget that applies. Once the platform has answered, the reservation is committed under the resource's ID, or released. If the
// outcome of a call is unknown, its reservation remains as an open hold until the reconciler finds the outcome. Therefore existing
// resources and possible ones together never exceed a budget, under any race or failure.
//
// Rates are in micro-dollars per hour and amounts in micro-dollars, both integers. A [Store] makes each step atomic. Package redisstore
// is the store that gateways share; [Memory] is the reference implementation and serves dry runs.
//
// [New] creates the parts of a gateway's ledger. They depend on a [Platform], a [Gateway] and a receiver of [Events].
package ledger
