package filter

// Outcome is the outcome of a call that creates a resource, as determined from the platform's response.
type Outcome uint8

const (
	// OutcomeNotSent means that the platform has not received the call.
	OutcomeNotSent Outcome = iota
	// OutcomeCreated means that the platform created the resource.
	OutcomeCreated
	// OutcomeRefused means that the platform refused the call.
	OutcomeRefused
	// OutcomeFailed means that the platform reported a failure with a problem document.
	OutcomeFailed
	// OutcomeUnknown means that the response does not determine the outcome.
	OutcomeUnknown
)
