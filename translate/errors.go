package translate

import (
	"errors"
	"time"
)

// ErrAmbiguous is wrapped by errors of Caller.Call when the platform may have
// carried out the call although its answer was lost.
var ErrAmbiguous = errors.New("the platform's answer was lost")

// UnfinishedError ends a request when the outcome of its create is not known. A
// repeat of the same request after ResumeAfter answers with the resource.
type UnfinishedError struct {
	// Noun names the resource.
	Noun string
}

// UnfinishedRetryAfter is when a repeat has a chance.
const UnfinishedRetryAfter = 5 * time.Second

// Error implements error; callers see it.
func (e *UnfinishedError) Error() string {
	return "The platform has not said what became of the " + e.Noun + ": it may have been created. Send the same request again to get it."
}

// MissingKeyText is the detail of a 401 for a request whose key is missing.
const MissingKeyText = "missing key: send it in the header Authorization: Bearer KEY"
