// Package jobs holds the work that child processes do for policies: compiling own Rego, trying
// a draft on one call, replaying recorded calls under a draft. Each job is a function for the
// parent, which starts the child, and a case of handle for the child.
package jobs
