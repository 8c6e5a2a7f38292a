// Package adminapi defines the endpoints of the admin API. Each [Endpoint] has a route, the role it requires, its parameters, its
// response, and its [Command]s. The admin listener, the command line and its completion, and the API description are all generated
// from the endpoints.
//
// An endpoint is implemented by a function of a context, a [Principal] and a struct of parameters, converted into a [Handler] by
// [HandlerFor]:
//
//	type windows struct {
//		Org adminapi.Org `query:"org,required" doc:"ID of an organisation"`
//	}
//
//	func (d deps) limits(ctx context.Context, s adminapi.Principal, p windows) (windowList, error)
//
// Features return their endpoints from a method Endpoints. Endpoints of a zero value can be listed but not called. The console and
// self-service call endpoints with [Call].
//
// Only [Endpoint.Invoke] calls the function. It returns a [RefusedError] if the principal lacks the role, and a [FaultsError] if
// parameters are unknown, missing, repeated or of the wrong type. The text of a fault lists the accepted values.
//
// The package does not depend on any feature of the gateway.
package adminapi
