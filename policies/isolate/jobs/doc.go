// Package jobs implements the work that child processes do for policies: compiling an organisation's own Rego, evaluating a draft
// for one call, and replaying recorded calls with a draft. Each job has a function for the parent, which starts the child, and a
// case in handle for the child.
package jobs
