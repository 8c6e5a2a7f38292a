// Package approval keeps the requests for approval that refused calls become, and
// what operators answered.
//
// A refusal that its policy or budget marks approvable is a question: may this
// caller make this very call? A [Store] keeps one [Record] for each, under a name
// that only the gateway can work out from the call; see the package record. Of two
// calls that race for one grant, one passes.
package approval
