package operation

import (
	"cmp"
	"maps"
	"slices"
)

// Spec describes one operation.
type Spec struct {
	// ID is the operationId in the v2 API, or the gateway's name for an operation of the run interface.
	ID   string
	Kind Kind
	Verb Verb
	// Price is the pricing rule. An empty value means PriceFree; Lookup replaces it.
	Price Price
	// ReadOperation is the operation that reads the resource in the path of the call, which is the resource that the call changes or deletes,
	// or whose logs it reads. It is empty if there is no such operation, or if the call only needs the ID.
	ReadOperation string
	// ListMember is the member of the response that contains a list of records of the kind, or "".
	ListMember string
	// PagedMember is the member of the response that the platform returns in pages (reference platform-v2-growth, section 1), or ""
	// if responses are complete.
	PagedMember string
	// Optional is set if the platform's machine-readable description does not contain the operation, so that the platform may not support it.
	// A 404 response then means an empty list.
	Optional bool
	// TakesTemplate is set if the body may name a template.
	TakesTemplate bool
	// ReturnsAddresses is set if the response contains records of endpoints, which include their URLs.
	ReturnsAddresses bool
	// MaxBody is the largest body in bytes if it differs from the limit of the REST API (reference platform-v2, section 12.7);
	// otherwise 0.
	MaxBody int64
	// BodyMember is set if the body is a list: policies receive an object with this single member, which contains the list.
	BodyMember string
	// Opaque is set if only the worker interprets the call: path, query, headers, body and response are passed through unchanged.
	Opaque bool
	// SubmitsJob is set if the response names a job or a batch that the call created.
	SubmitsJob bool
	// AffectsAllJobs is set if the call affects all jobs of the endpoint, regardless of who submitted them.
	AffectsAllJobs bool
	// AccountWide is set if the response contains the costs of the whole account, without the IDs of resources.
	AccountWide bool
	// Synchronous is set if the response is only useful to a connected caller: if the caller disconnects, the call is canceled. A
	// job that it started continues.
	Synchronous bool
}

// ResourceList returns the member of the response that contains a list of resources, or "". Billing records are not resources.
func (r Spec) ResourceList() string {
	if r.Kind == KindBilling {
		return ""
	}
	return cmp.Or(r.PagedMember, r.ListMember)
}

// MergesState reports whether the resulting state depends on the current resource, which must then be read first.
func (r Spec) MergesState() bool {
	return r.ReadOperation != "" && (r.Verb == VerbUpdate || r.Verb == VerbAction)
}

// EffectiveVerb returns the verb of a call with the given body: the operation's verb, or the verb of the action named in the body.
// It returns "" if the platform does not have that action.
func (r Spec) EffectiveVerb(body any) Verb {
	if r.Verb != VerbAction {
		return r.Verb
	}
	object, _ := body.(map[string]any)
	action, _ := object["action"].(string)
	return actions[action]
}

// Deduplicated reports whether a call with the given body creates or starts something, so that a retry with the same
// Idempotency-Key must not do so again. Jobs and delegations are excluded, because the gateway cannot recognise them afterwards.
func (r Spec) Deduplicated(body any) bool {
	switch r.EffectiveVerb(body) { //nolint:exhaustive // other verbs create nothing
	case VerbCreate, VerbStart, VerbRestart:
		return HasOwner(r.Kind)
	}
	return false
}

// actions maps the action names in bodies to verbs.
var actions = map[string]Verb{"start": VerbStart, "stop": VerbStop, "restart": VerbRestart, "terminate": VerbDelete}

// Actions returns the verbs of all actions, sorted.
func Actions() []Verb { return slices.Sorted(maps.Values(actions)) }

// Lookup returns the spec of an operation. ok is false for an unknown operation, which must be refused.
func Lookup(id string) (row Spec, ok bool) {
	row, ok = byID[id]
	return row, ok
}

// All returns the specs in the order of the API's description, followed by the specs of the run interface. It does not include the
// specs returned by Undescribed.
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
