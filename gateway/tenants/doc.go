// Package tenants compiles the organisations of a configuration: the limits, budgets and rules that the chain and the ledger hold their callers to.
package tenants
