// Package extproc is the Envoy door: an external processor (Envoy's ext_proc
// filter) that drives the same chain as the HTTP door. Phase messages come in;
// mutations or an immediate response go out.
//
// Envoy sends and relays the messages itself, so this door answers with the
// difference between what arrived and what the chain built. Bodies are asked
// for whole (BUFFERED), because a body judged in part is not judged.
//
// Invariants: a stream never ends cleanly before its verdict, since Envoy
// would take that for consent; every message gets exactly one answer; header
// values travel as raw_value only, the one form Envoy does not drop.
package extproc
