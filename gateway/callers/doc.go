// Package callers manages the callers of the gateway: the organisations of a configuration in the form that the filter chain and the ledger
// use, the keys of the configuration, keys that operators and team leads create at run time, revoked tokens, and the permissions that
// callers can query.
//
// The gateway compiles each configuration with [Keys.Callers] and calls [Keys.Poll] every second. [Operators] serves operators,
// [Keys.Routes] team leads, and [Access] every caller.
//
// Keys created at run time are records in Redis with digests of their secrets. These keys and the revocations apply at all gateways that
// share a store: each gateway reads changes once a second and then replaces its [Callers], which never change. [Access] caches its results
// for a short time.
//
// An organisation is called org in names, filter.Tenant in the form that filters use, and adminapi.Tenant in the form that operators can
// query.
package callers
