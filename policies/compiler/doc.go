// Package compiler compiles an organisation's policies. It reads the library and the organisation's own Rego, checks parameters and
// rule names, and links and compiles an entrypoint of calls with constant parameters.
//
// Faults are *policyconfig.Error values with a position; all faults are reported, joined. All results are immutable and may be
// shared.
package compiler
