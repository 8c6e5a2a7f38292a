// Package reverseproxy serves HTTP requests of callers. It converts a request to a filter.Exchange, runs the filter chain, sends the
// resulting request to the platform, and streams the response to the caller.
//
// The package itself makes no decisions and composes no responses, so that requests are treated alike whether they arrive here or through
// Envoy's ext_proc filter. It parses the path from the bytes of the request target and never from a normalised URL.
package reverseproxy
