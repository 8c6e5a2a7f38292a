// Package regosandbox confines the evaluation of Rego that may be hostile: which
// functions it may call, how much each may make, how deep it may go. It bounds
// what OPA itself cannot stop in the middle of a step.
package regosandbox
