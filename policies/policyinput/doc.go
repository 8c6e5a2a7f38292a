// Package policyinput holds the facts of a call that a policy may know, as an [Input], as the
// document that policies see, and as it is written down and read back.
//
// One description (describe.go) gives the members of the document. From it
// follow the conversion to values of OPA, the keys under which verdicts are
// remembered, the form that is logged, the reader of that form, the JSON Schema
// of the document and its documentation.
//
// Only the part of a document that policies read is ever converted: a
// [Projection], found when they are compiled. Equal projected documents get
// equal verdicts, which is why a [Cache] is sound. A [AccessTracer] finds out which
// policies looked at a part of a recorded document that is not known.
package policyinput
