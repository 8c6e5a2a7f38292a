package policies

// Decision is the result of evaluating an organisation's policies for one call. The zero Decision allows everything; the engine
// returns it only with a nil error. Callers must not modify its slices, which may be shared with other decisions.
type Decision struct {
	// Revision identifies the compiled policies that made the decision. It is a digest of the library and of the organisation's
	// policies, parameters and data.
	Revision string
	// Deny lists every reason to refuse the call. It is empty if the call is allowed.
	Deny []Violation
	// Warn lists violations of policies in warn mode and the warnings of the organisation's own Rego. They are returned to the
	// caller.
	Warn []Violation
	// Shadow lists violations of policies in shadow mode. They are logged and not returned to the caller.
	Shadow []Violation
	// Excepted lists violations suppressed by an exception. They are logged.
	Excepted []Excepted
	// Mutate lists changes to make to the request body. If it is not empty, the decision is not final: call Apply, validate and
	// resolve the new body, and call Decide again.
	Mutate []Mutation
}

// Violation is one reason why a policy objects to a call.
type Violation struct {
	// Policy is the name of the policy, such as gpu_allow_list.
	Policy string
	// Message describes the violation and how to fix it, in plain text.
	Message string
	// Pointer is the JSON Pointer (RFC 6901) of the offending field in the v2 body, such as /gpu/id. It is empty if no single field
	// is at fault. If the body was merged with a template or with the current resource, it may name a field that the caller did not
	// send.
	Pointer string
	// Doc links to the documentation of the policy.
	Doc string
	// Excess is the amount by which the limit is exceeded, in the unit of the limit. It is 0 if the policy does not report an amount.
	Excess float64
	// Approvable is copied from the entry: it reports whether an operator may approve the call despite this violation.
	Approvable bool
}
