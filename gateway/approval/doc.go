// Package approval keeps the requests for approval that refused calls become, and
// what operators answered.
//
// A refusal that its policy or budget marks approvable is a question: may this
// caller make this very call? A [Store] keeps one [Record] for each, under a name
// that only the gateway can work out from the call. A record is changed by compare
// and swap only, so that of two calls that race for one grant one passes. All records
// of an organisation are in one slot of a Redis Cluster, and the store's clock is
// what times are measured by.
package approval
