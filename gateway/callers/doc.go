// Package callers knows who may call, and what for: the organisations of a configuration as the chain and the ledger use them, the keys of
// the configuration, keys that operators and leads of teams made at run time, revoked tokens, and the rights of a caller.
//
// Keys made at run time are records in Redis that have digests of the keys and no secret. They and the revocations hold at all gateways
// that share a store.
package callers
