// Package money enforces budgets: it connects the ledger of package policies/ledger to the gateway.
//
// Its stages are [Reserve], which prices a call, reserves the price against budgets and settles the reservation after the response, and
// [Measure], which reads the tokens and job facts of a run. [New] returns the ledger with its background loops, which the gateway runs:
// Outbox, Loop and Watcher, and the Journal. They reconcile the ledger with the platform and stop resources when budgets require it. The
// package also lets owners snooze idle resources and serves the admin endpoints for spending.
//
// The ledger is in the store that gateways share ([NewAccounts]). In memory are snapshots of ledgers, the queue of settlements, the costs
// of recent runs, and the endpoints that reject usage reports ([StreamOptions]). The directory Deps.StateDir has the journal of owners.
//
// Types with JSON members, such as [Ledger], [Balance] and [Hold], are responses of the admin API, with amounts as text in USD; the types
// of the same names in package policies/ledger hold micro-dollars. Begin reading with [Reserve] for calls and with [New] for the background
// loops.
package money
