// Package nextstate computes a resource as it will be after a call, by the platform's own
// rules: defaults of a create, the one-time copy of a template, the merge of an update,
// the outcome of an action. Policies and prices judge that state, never the request alone,
// so that a small create followed by a large update, or a harmless body with a hostile
// template, gains nothing.
//
// Everything here is a pure function over decoded JSON (map[string]any, []any,
// string, bool, nil, json.Number). Arguments are never changed; results share
// unchanged parts with them and must be treated as read-only.
//
// A call the platform would refuse because of the merge (a mount kind that was
// not there, GPUs on a CPU endpoint) is a *Fault: what such a call would end in
// is not a state to judge.
//
//	needs := effective.NeedsOf("updatePod", body)
//	// read needs.Current and needs.Template ...
//	after, err := effective.Update("updatePod", current, body, template)
package nextstate
