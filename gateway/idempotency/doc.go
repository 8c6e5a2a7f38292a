// Package idempotency remembers calls that must not be made twice: the first
// answer to each Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header),
// and the creates of which it is not known what became of them.
//
// A [Store] keeps one [Record] for all requests that are repeats of each other; see
// the package record. Of many repeats at once, one makes the call.
package idempotency
