// Package policyinput defines what policies can read about a call: as an [Input] that callers fill, as the document that policies
// see, and as JSON that is logged and read back.
//
// The members of the document are described once, in describe.go. The conversion to OPA values, the cache keys of verdicts, the
// logged form and its reader, the JSON Schema of the document and its documentation are all derived from that description.
//
// Only the part of a document that policies read is converted. This [Projection] is determined when policies are compiled. Equal
// projected documents have equal verdicts, so a [Cache] of verdicts is correct. An [AccessTracer] finds out which policies read an
// unknown part of a recorded document.
package policyinput
