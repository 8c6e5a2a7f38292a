// Command tollgate is a policy-enforcing API gateway for the Compute Platform.
//
// It exits with 0 when it did what was asked, 1 when it could not, and 2 when
// it was asked wrongly.
package main
