package intent

// Outcome is what became of a call, by the platform's answer.
type Outcome uint8

const (
	// OutcomeNone means that the platform has seen nothing of it.
	OutcomeNone Outcome = iota
	// OutcomeMade and OutcomeRefused mean that it has made the resource, or refused to.
	OutcomeMade
	OutcomeRefused
	// OutcomeFailed means that it says it failed, by a problem document.
	OutcomeFailed
	// OutcomeUnknown is everything else.
	OutcomeUnknown
)
