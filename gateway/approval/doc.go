// Package approval stores approval requests and the answers of operators.
//
// If a call is refused by a policy or budget marked approvable, an approval request for the call is created.
// A [Store] keeps one [Record] for each request, under a name that only the gateway can compute from the call. If two calls race for one
// grant, only one of them is allowed. [Service] implements the endpoints with which operators list and answer the requests.
package approval
