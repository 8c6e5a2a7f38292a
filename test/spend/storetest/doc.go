// Package storetest is the contract of a ledger's store: every [spend.Store] passes
// it.
package storetest
