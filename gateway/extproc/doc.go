// Package extproc is the Envoy door: an external processor (Envoy's ext_proc
// filter) that drives the same chain as the HTTP door. Phase messages come in;
// mutations or an immediate response go out.
//
// Envoy sends and relays the messages itself, so this door answers with the
// difference between the received message and the chain's. Request bodies come
// whole (BUFFERED), because a body judged in part is not judged; of answers the
// door sees the headers, of errors the beginning of the body. A call whose answer a
// stage wants whole is made by the door itself. The required settings of the filter are in
// docs/envoy.md; what of it can be seen is checked for each request, and test/envoy
// holds the rest to a real Envoy.
//
// Invariants: a stream never ends cleanly before its verdict, since Envoy
// would take that for consent; a request whose body is still to be judged is
// stripped bare; every message gets exactly one answer; header values travel as
// raw_value only, the one form Envoy does not drop.
//
// The answer to a valid request holds the organisation's platform key. Whoever
// can connect can have it, so the door is for Envoy alone.
package extproc
