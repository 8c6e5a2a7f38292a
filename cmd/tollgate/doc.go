// Command tollgate is a policy-enforcing API gateway for the Compute Platform.
//
// The exit status is 0 on success, 1 on failure, and 2 for an invalid command line.
package main
