// Package problem holds the gateway's refusals: RFC 9457 problem details and
// the closed list of kinds the gateway can answer with.
//
// A Problem is the v2 form. Callers of the older dialects get the same facts
// in their own shape; package filter does that at the edge. A Problem carries
// only text meant for the caller: the inner cause of a fault never enters it.
package problem
