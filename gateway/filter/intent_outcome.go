package filter

// Outcome is the outcome of a call, by the platform's answer.
type Outcome uint8

const (
	// OutcomeNotSent means that the platform has seen nothing of it.
	OutcomeNotSent Outcome = iota
	// OutcomeCreated means that it has made the resource.
	OutcomeCreated
	// OutcomeRefused means that it refused to make it.
	OutcomeRefused
	// OutcomeFailed means that it says it failed, by a problem document.
	OutcomeFailed
	// OutcomeUnknown is everything else.
	OutcomeUnknown
)
