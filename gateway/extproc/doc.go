// Package extproc implements an external processor for Envoy's ext_proc filter. It runs the same filter chain as the HTTP listener. Each
// phase message is answered with header changes or with an immediate response.
//
// Envoy itself forwards the messages, so the processor returns the difference between the received message and the result of the chain.
// Request bodies arrive complete (BUFFERED), because a body must be checked as a whole. For responses the processor sees the headers and,
// for errors, the beginning of the body. If a stage needs a complete response, the processor calls the platform itself. The required filter
// settings are in docs/envoy.md. The settings visible in a request are checked with each request, and test/envoy checks the others with a
// real Envoy.
//
// Invariants: a stream never ends cleanly before its verdict, because Envoy would treat that as approval; all headers are removed from a
// request whose body has not been checked yet; each message gets exactly one reply, and only the refusal of a slow body is sent without a
// message; and header values are sent as raw_value only, because Envoy drops them otherwise.
//
// The reply to an accepted request contains the organisation's platform key. Anyone who can connect can obtain the key, so only Envoy may
// be able to reach this listener.
package extproc
