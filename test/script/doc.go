// Package script plays short stories over the real binary: start, ask, reload,
// stop. Each story is one file of testdata; there is no code here but tests.
package script
