// Package translate turns calls of the platform's retired interfaces into
// calls of its v2 API and the answers back. This package holds the parts that the
// dialects share; translate/v1 and translate/graphql hold one dialect each.
//
// A translator never opens a connection. It is handed a Caller, whose every
// call passes the gateway's whole inner chain, and it works on parsed values
// only. A Dialogue is the conversation one legacy request has through it: it
// repeats the calls that may be repeated within a time budget and notes the parts of the
// answer. RunCandidates places a pod from lists, one create call after the
// other. Store remembers facts that v2 forgets; Catalog caches prices and stock.
//
// Invariant: a translator sends v2 calls like any other, so policies,
// prices and limits know one API.
package translate
