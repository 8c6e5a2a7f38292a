// Package adminapi describes the questions of operators to a gateway, one [Endpoint] each: its route, the role that it requires, its
// parameters, its answer, and its [Command]s. The operators' listener, the command line and its completion, and the description of
// the API are made from the same rows.
//
// A question is a function of a context, a [Principal] and a struct of parameters, made into a [Handler] by [HandlerFor]:
//
//	type windows struct {
//		Org row.Org `query:"org,required" doc:"id of an organisation"`
//	}
//
//	func (d deps) limits(ctx context.Context, s row.Scope, p windows) (windowList, error)
//
// The method Rows of a feature's value returns the feature's rows. The rows of a zero value can be described, and not be asked. Pages and self-service ask a row by [Calldler].
//
// Only [Endpoint.Invoke] calls the function. It refuses a scope without the role, and parameters that are unknown, missing, repeated or of another
// type, with a [RefusedError] or [FaultsError]. The text of a fault names the values that would have been accepted.
//
// The package is a leaf: it knows no feature of the gateway.
package adminapi
