// Package extauthz is the door for meshes without ext_proc: Envoy's external
// authorization service (envoy.service.auth.v3), which judges requests by the chain of
// the other doors, up to the verdict.
//
// The protocol has no place for the answer, and none for another body. Calls that need
// either are refused with 421, see [filter.InLine] and [filter.Verbatim]; the platform's
// answers reach callers as they are, errors included. What the filter must be set to is
// in docs/envoy.md; what of it can be seen is checked for each request, and test/envoy
// holds the rest to a real Envoy.
//
// Each request is judged by itself: nothing is remembered from one to the next but what
// quotas count.
package extauthz
