// Package envoytest is a minimal Envoy for tests: the client side of the
// ext_proc protocol in process, in front of a real upstream.
//
// It holds the processor to the rules that a real Envoy enforces or silently gets wrong:
// header values as raw_value only, a content-length that matches a replaced body, a mode
// override in header replies only, no mutation of routing headers, one reply for each
// message, and failure closed. Answers of its own (a body over the limit, an upstream that
// is away) pass the processor too, as Envoy's do. test/envoy holds the real Envoy to the
// same. It is not a proxy for anything else.
package envoytest
