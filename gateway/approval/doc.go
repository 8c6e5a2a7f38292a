// Package approval keeps requests for approval and the answers of operators.
//
// A refusal whose policy or budget is marked approvable becomes a request: may this caller make this call? A [Store] keeps one [Record] for
// each, under a name that only the gateway can compute from the call. Of two calls that race for one grant, one passes. [Service] has the
// rows with which operators list and answer the requests.
package approval
