// Package charge holds the stages of the chain that know the cost of a call. Reserve holds
// the most that a call can cost against the budgets that apply, before it is sent, and
// settles it when its end is known; Measure reads the cost of a run from its answer.
// Package money keeps the ledger itself.
package charge
