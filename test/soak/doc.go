// Package soak runs a gateway under mixed load, with reloads, a key whose secret changes and streams that are left, and fails when something
// grows that should stand still: heap, goroutines, descriptors, series, keys in Redis that never expire; or when the ledger and the
// platform differ at the end. make soak runs it for minutes, the tests for some seconds, so that it does not rot.
package soak
