// Package approval stores approval requests and the answers of operators.
//
// If a call is refused by a policy or budget marked approvable, an approval request is created: may this caller make this call? A
// [Store] keeps one [Record] for each, under a name that only the gateway can compute from the call. If two calls race for one
// grant, one of them passes. [Service] implements the endpoints with which operators list and answer the requests.
package approval
