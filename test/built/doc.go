// Package built has the tollgate binary for tests that start it. It is linked once
// for all packages of a test run, and again only after a change of the code: linking
// takes longer than most of those tests.
package built
