// Package policycheck finds the faults of an organisation's own Rego before it is loaded:
// files that do not parse, compile strictly or fit the input's schema, tests included,
// files that are not formatted, and rules that the engine would not take.
//
// It reads and reports; only Format writes files. Every fault is a
// *section.Error, so it has a file, row and column wherever there is one.
//
//	report, err := policycheck.Directory("policies/acme")
package policycheck
