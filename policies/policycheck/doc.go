// Package policycheck finds what is wrong with an organisation's own Rego before
// it is loaded: what does not parse, compile strictly or fit the input's schema,
// tests included, what is not formatted, and what the engine would not take.
//
// It reads and reports; only Format writes files. Every fault is a
// *section.Error, so it has a file, row and column wherever there is one.
//
//	report, err := policycheck.Directory("policies/acme")
package policycheck
