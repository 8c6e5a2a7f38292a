// Package bundle loads an organisation's Rego from an OPA bundle. It downloads the bundle or reads it from a file, verifies its signature,
// rejects a bundle that would disable policies by omitting them, and stores the last valid bundle for the next start.
//
// A rejected bundle changes nothing; see [Source.Status].
package bundle
