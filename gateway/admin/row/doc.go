// Package row describes what operators can ask a gateway, one [Row] for each question: its route, the role that it requires, its
// parameters, what it answers, and its [Command]s. The operators' listener, the command line and its completion, and the description of
// the API are made from the same rows.
//
// A question is a function of a context, a [Scope] and a struct of parameters, made into a [Func] by [Do]:
//
//	type windows struct {
//		Org row.Org `query:"org,required" doc:"id of an organisation"`
//	}
//
//	func (d deps) limits(ctx context.Context, s row.Scope, p windows) (windowList, error)
//
// Nobody calls it but [Row.Ask], which refuses a scope without the role, and parameters that are unknown, missing, repeated or of another
// type. What is refused is a [RefusedError] or [FaultsError]; both name what would have been accepted.
//
// The package is a leaf: it knows no feature of the gateway.
package row
