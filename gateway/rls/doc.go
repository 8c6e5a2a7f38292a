// Package rls is Envoy's rate limit service (envoy.service.ratelimit.v3) on the
// limiter of the gateway: services of a mesh that never pass the gateway draw on the
// quotas of its organisations, teams and keys, and on quotas of rules of their own.
//
// A [Table] turns the descriptors of a request into scopes of one organisation; the
// [Service] takes all of them in one atomic step, so that a request that one quota
// refuses takes nothing from the others. docs/ratelimits.md says what descriptors
// mean.
//
// The service counts; it does not authenticate. Whoever can connect can use up the
// quotas, so it is served where Envoys alone can connect.
package rls
