// Package storetest is the contract of a ledger's store: every [ledger.Store] passes
// it.
package storetest
