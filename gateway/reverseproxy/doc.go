// Package reverseproxy serves HTTP requests of callers. It turns a request into an Exchange, runs the filter chain, sends the resulting
// request to the platform, and streams the response back.
//
// The package composes no responses and makes no decisions, so that this entrance and Envoy's ext_proc behave alike. Paths are parsed from
// the bytes of the request target, never from a normalised URL.
package reverseproxy
