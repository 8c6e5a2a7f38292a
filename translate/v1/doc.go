// Package v1 keeps programs written for the platform's first REST API working:
// it answers each of its 37 operations by making v2 calls.
//
// A resource is one row of a table (operations.go), with its create, list, get, update and
// delete; a file per resource holds the functions the rows name. A handler reads a validated body, makes
// calls through a translate.Client and returns a value in v1's shape or a
// *fault. Nothing of a caller's body is copied into a v2 body: each is built
// anew from the fields this package knows, so v2 never sees a surprise and
// policies judge exactly the sent body.
//
// Invariants:
//   - API.Serve always answers, in v1's dialect, for any request.
//   - X-Legacy-Warning names each loss in translation; none is silent.
//   - A create leaves at most one resource, also when an answer is lost.
//   - A missing note in the store makes an answer less exact, never wrong.
package v1
