package policies

// Decision is the decision of an organisation's policies about a call. The zero
// Decision allows everything; the engine returns one only beside a nil error.
// Its lists may be shared with other decisions and must not be changed.
type Decision struct {
	// Revision names the compiled state that decided: a digest of the library,
	// the organisation's policies, their parameters and data.
	Revision string
	// Deny lists every reason to refuse the call; empty when it may pass.
	Deny []Violation
	// Warn lists the denials of policies in mode warn, and the warnings
	// of the organisation's own Rego. The caller is told.
	Warn []Violation
	// Shadow lists the denials of policies in mode shadow. It is
	// recorded, the caller is not told.
	Shadow []Violation
	// Excepted lists the denials that an exception lifted.
	// It is recorded.
	Excepted []Excepted
	// Mutate lists the changes to make to the body before it is sent. While it
	// is not empty the decision is not final: apply it, validate and resolve the
	// new body, and decide again; see Apply.
	Mutate []Mutation
}

// Violation is one reason a policy gives.
type Violation struct {
	// Policy is the policy's name, e.g. gpu_allow_list.
	Policy string
	// Message names the violation and its remedy, for people.
	Message string
	// Pointer is the offending field in the v2 body (RFC 6901), e.g. /gpu/id;
	// "" when no single field is at fault. After a merge (template, update) it
	// may name a field the caller did not send.
	Pointer string
	// Doc is where the policy is explained.
	Doc string
	// Excess is the amount found beyond the allowed one, in the unit of its
	// limit; 0 where the policy does not say.
	Excess float64
	// Approvable says that an operator may let a call pass it.
	Approvable bool
}
