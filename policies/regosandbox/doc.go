// Package regosandbox confines the evaluation of untrusted Rego. It restricts which functions a policy may call, how large their
// results may be, and how deep an evaluation may recurse. It covers what OPA cannot interrupt within a step.
package regosandbox
