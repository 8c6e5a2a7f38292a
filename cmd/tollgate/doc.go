// Command tollgate is a policy-enforcing API gateway for the Compute Platform.
//
// It exits with 0 on success, 1 on a failure, and 2 when the command line
// is wrong.
package main
