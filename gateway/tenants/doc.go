// Package tenants compiles the organisations of a configuration: what the chain and the ledger hold their callers to.
package tenants
