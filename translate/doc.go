// Package translate converts calls of the platform's legacy APIs into calls of its v2 API, and the responses back. It
// holds the parts that the dialects share; translate/v1 and translate/graphql implement one dialect each.
//
// The gateway implements Caller and supplies Deps; the dialects call everything else. The package keeps no state between requests except
// for Catalog, in memory. Stored facts are called notes: they are in the Store, which is Redis in production, for each account.
//
// A translator never opens a connection. It receives a Caller, whose calls pass through the gateway's whole inner filter chain, and it
// works on parsed values only. A Client makes the v2 calls of one legacy request: it retries them within a time budget and collects
// warnings. RunCandidates places a pod by trying several create calls in turn. Store keeps facts that v2 does not return; Catalog caches
// prices and stock.
//
// Invariant: a translator makes v2 calls like any other caller, so that policies, prices and limits handle a single API.
package translate
