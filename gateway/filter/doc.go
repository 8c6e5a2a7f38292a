// Package filter is the gateway's pipeline: the Exchange that travels through
// it, the two-phase Filter, the Chain that runs filters in order, and one file
// for each stage.
//
// Both doors drive the same chain. It has three parts. The head needs headers
// only, so a refusal there costs no body; the body part decodes and, for the
// legacy dialects, translates; the call part judges one v2 call. A v2 request
// passes the call part once, a legacy request once for every v2 call it
// becomes.
//
// Invariants: In is never changed after the door made it; Out is built from
// parsed values only; a filter returns an error to refuse and never writes an
// answer of its own shape; this package is the only place where errors become
// problems.
package filter
