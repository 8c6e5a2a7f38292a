// Package v1 serves the 37 operations of the platform's first REST API with v2 calls, so that programs written for v1
// continue to work.
//
// Each resource is one entry of a table (operations.go) with its create, list, get, update and delete handlers. The handlers of a resource
// are in one file. A handler reads a validated body, makes calls through a translate.Client, and returns a value in v1's form or a *fault.
// A v2 body never contains parts of a caller's body. It is built from the fields that this package knows, so that v2 receives no unexpected
// data and policies see exactly the body that is sent.
//
// Invariants:
//   - API.Serve always returns a response in v1's dialect, for any request.
//   - X-Legacy-Warning names every part of a request that is lost in translation.
//   - A create leaves at most one resource, even if a response is lost.
//   - A missing note in the store makes a response less exact, but never wrong.
package v1
