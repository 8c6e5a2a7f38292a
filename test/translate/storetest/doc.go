// Package storetest is the contract every translate.Store keeps, as a test to
// run on an implementation.
package storetest
