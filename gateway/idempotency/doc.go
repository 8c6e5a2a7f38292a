// Package idempotency remembers calls that must not be made twice: the first
// answer to each Idempotency-Key (IETF draft-ietf-httpapi-idempotency-key-header),
// and the creates of which it is not known what became of them.
//
// A [Store] keeps one [Record] for all requests that are repeats of each other. A
// record is changed by compare and swap only, so that of many repeats at once one
// makes the call. All records of an organisation are in one slot of a Redis
// Cluster, and the store's clock is what ages are measured by.
package idempotency
