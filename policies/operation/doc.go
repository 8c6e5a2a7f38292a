// Package operation describes every operation that the gateway knows, of the v2 API and of
// the run interface, by one [Spec] each: its subject, its effect, its price, and the
// resources that must be read before it can be judged. All differences between operations
// follow from their rows.
//
// The rows of v2 are compared with the API's description at start-up and by
// tollgate check --coverage; neither may have an operation that the other
// lacks.
package operation
