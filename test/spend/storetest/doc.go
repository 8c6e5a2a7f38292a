// Package storetest is the contract of a ledger's store: every [ledger.Store] passes
// it. [Memory] is the reference implementation, with which the others are compared.
package storetest
