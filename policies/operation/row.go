package operation

import (
	"cmp"
	"maps"
	"slices"
)

// Spec is the gateway's knowledge of one operation.
type Spec struct {
	// ID is the operationId of the v2 API, or the gateway's name for an
	// operation of the run interface.
	ID   string
	Kind Kind
	Verb Verb
	// Price is the price rule; "" in a row means PriceFree, and Of fills it in.
	Price Price
	// ReadOperation is the operation that reads the object which the path names: the one
	// that is changed, ended or whose logs are read. "" when there is none, or
	// when the call needs no more than its id.
	ReadOperation string
	// ListMember is the member of the answer that holds records of the kind, "" if it
	// holds no list of them.
	ListMember string
	// PagedMember is the member of the response that the platform returns in pages (reference
	// platform-v2-growth, section 1), "" if responses are whole.
	PagedMember string
	// Optional is set if the platform may not have the operation: its machine-readable
	// description does not. A response of 404 means the same as an empty list.
	Optional bool
	// TakesTemplate is set if the body may name a template.
	TakesTemplate bool
	// ReturnsAddresses is set if its answer holds records of endpoints, which say where
	// these are called.
	ReturnsAddresses bool
	// MaxBody is the most bytes its body may have, if that is not the limit of the
	// REST API (reference platform-v2, section 12.7).
	MaxBody int64
	// BodyMember is set if the body is a list: the name of the member that it is judged as,
	// of an object that has no other.
	BodyMember string
	// Opaque is set if the call is the worker's own affair: path, query, headers and
	// body pass as they are, and so does the answer.
	Opaque bool
	// SubmitsJob is set if the answer names a job or a batch that the call has made.
	SubmitsJob bool
	// AffectsAllJobs is set if the call is about all jobs of its endpoint, whoever submitted
	// them.
	AffectsAllJobs bool
	// Synchronous is set if the answer is of no use once its caller has left: the call
	// ends with it. The job it may have started goes on.
	Synchronous bool
}

// ResourceList returns the member of the response that is a list of resources, "" if there is none.
// Bills are not resources.
func (r Spec) ResourceList() string {
	if r.Kind == KindBilling {
		return ""
	}
	return cmp.Or(r.PagedMember, r.ListMember)
}

// MergesState reports whether the state after the operation depends on the object as
// it is, which must therefore be read first.
func (r Spec) MergesState() bool {
	return r.ReadOperation != "" && (r.Verb == VerbUpdate || r.Verb == VerbAction)
}

// EffectiveVerb returns the verb of a call with the given body: that of the row, or of
// the action that the body names; "" if the platform does not have the action.
func (r Spec) EffectiveVerb(body any) Verb {
	if r.Verb != VerbAction {
		return r.Verb
	}
	object, _ := body.(map[string]any)
	action, _ := object["action"].(string)
	return actions[action]
}

// Deduplicated reports whether a call with the given body makes or starts something, so that
// a repeat of it must not do so again: what an Idempotency-Key is honoured for. Jobs
// are not: they cannot be recognised afterwards.
func (r Spec) Deduplicated(body any) bool {
	switch r.EffectiveVerb(body) { //nolint:exhaustive // the others make nothing
	case VerbCreate, VerbStart, VerbRestart:
		return r.Kind != KindJob
	}
	return false
}

// actions are the verbs of the actions that a body may name.
var actions = map[string]Verb{"start": VerbStart, "stop": VerbStop, "restart": VerbRestart, "terminate": VerbDelete}

// Actions lists the verbs of actions.
func Actions() []Verb { return slices.Sorted(maps.Values(actions)) }

// Lookup returns the row of an operation. ok is false for an unknown operation,
// which cannot be judged and must be refused.
func Lookup(id string) (row Spec, ok bool) {
	row, ok = byID[id]
	return row, ok
}

// All returns the rows in the order of the API's description, those of the run
// interface last. Those for reads that no description has are not among them: see Undescribed.
func All() []Spec { return slices.Clone(rows) }

var rows = func() []Spec {
	all := slices.Concat(v2, run)
	for i := range all {
		if all[i].Price == "" {
			all[i].Price = PriceFree
		}
	}
	return all
}()

var byID = func() map[string]Spec {
	m := make(map[string]Spec, len(rows))
	for _, r := range slices.Concat(rows, Undescribed()) {
		m[r.ID] = r
	}
	return m
}()
