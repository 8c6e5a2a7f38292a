// Package bundle gets an organisation's Rego from an OPA bundle: it fetches the
// bundle, or reads it from a file, verifies its signature, refuses one that would
// switch policies off by lacking them, and keeps the last good one for the next
// start.
//
// A bundle that cannot be taken changes nothing; see [Source.Status].
package bundle
