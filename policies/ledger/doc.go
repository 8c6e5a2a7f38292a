// Package ledger implements the spending ledger. It keeps the cost and the number of an organisation's resources within its budgets.
//
// Every change takes two steps, as in a two-phase transfer. Before a call is sent to the platform, its worst case is reserved against every
// budget that applies. Once the platform has answered, the reservation is committed under the resource's ID, or released. If the outcome of
// a call is unknown, its reservation remains as an open hold until the reconciler finds the outcome. Existing resources and reservations
// together therefore never exceed a budget, under any race or failure.
//
// Package gateway/money creates the components of a ledger with [New]. For each call, it calls [Ledger.Reserve] and [Ledger.Settle]. The
// components depend on a [Platform], a [Gateway] and a receiver of [Events]. Begin reading with [Ledger] for calls, with [Reconciler] for
// background work, and with [Store] for the data.
//
// A [Store] holds balances, resources, holds, owners of jobs, roll-ups of costs, notices and intents for each organisation, and makes each
// step atomic. Package redisstore is the store that gateways share. A dry run uses a [Simulation] instead, a copy of the data. Each gateway
// keeps [Snapshots] of ledgers, the queue of the [Outbox], and [RunCosts] in memory. An optional [Journal] on disk stores the
// owners of resources and the reservations of the gateway.
//
// # Terms
//
//   - A scope is a holder of budgets: a key, a team or the organisation. A ceiling is one limit in its budget.
//   - A hold is a reservation that has not ended. It is in flight while its call is in progress, and open while the outcome of the call is
//     unknown.
//   - A settlement ends a hold or marks it as open.
//   - A pass is one comparison of an organisation's ledger with the platform, by the [Reconciler]. An adjustment is a change of the ledger
//     that a pass makes.
//   - An item is a source of costs in the history: a resource of one owner, or all runs of one owner on one endpoint. A roll-up is the cost
//     of an item in an hour or a day.
//   - A notice is a small value that gateways share about alerts, idle resources and snoozes. To snooze a resource is to exempt it from
//     idle handling until a date.
//
// # Recovery
//
// A store can lose data, for example when Redis restarts. The [Head] of each ledger has an epoch, which changes with each rebuild, and a
// sequence number. A gateway that knows a later [Position] than the head detects the loss. The ledger is then incomplete: it admits no
// calls that raise cost. One gateway rebuilds it ([Reconciler.Rebuild]): it begins a new epoch, every gateway sends its memory with
// [RecoveryStore].Offer and Restore, and a pass adds the resources in the platform's lists.
//
// Rates are in micro-dollars per hour and amounts in micro-dollars, both integers.
//
// See [Config] for the settings.
package ledger
