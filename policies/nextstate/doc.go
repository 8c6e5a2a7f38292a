// Package nextstate computes the state of a resource after a call, following the platform's rules: the defaults of a new resource, the
// one-time copy of a template, the merge of an update, and the result of an action. Policies and prices use that state and never the
// request alone. A request for a small resource followed by a large update, or a harmless body with a hostile template, therefore cannot
// bypass them.
//
// All functions are pure and work on decoded JSON (map[string]any, []any, string, bool, nil, json.Number). They do not modify their
// arguments. Results share unchanged parts with the arguments and must be treated as read-only.
//
// If the platform would refuse a call because of the merge (adding a mount of a kind that the pod does not have, GPUs on a CPU endpoint),
// there is no resulting state and the functions return a *Fault.
//
//	needs := nextstate.NeedsOf("updatePod", body)
//	// read needs.Current and needs.Template ...
//	after, err := nextstate.Update("updatePod", current, body, template)
package nextstate
