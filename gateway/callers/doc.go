// Package callers manages the callers of the gateway: the organisations of a configuration in the form that the filter
// chain and the ledger use, the keys of the configuration, keys that operators and team leads create at run time, revoked
// tokens, and the permissions of a caller.
//
// Keys created at run time are records in Redis with digests of their secrets. These keys and the revocations apply at
// all gateways that share a store.
package callers
