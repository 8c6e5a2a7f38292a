package translate

import (
	"errors"
	"time"
)

// ErrAmbiguous is wrapped by errors of Caller.Call if the platform may have carried out the call but its response was
// lost.
var ErrAmbiguous = errors.New("the platform's response was lost")

// UnfinishedError ends a request whose create has an unknown result. A retry of the same request after
// UnfinishedRetryAfter returns the resource.
type UnfinishedError struct {
	// Noun names the kind of resource.
	Noun string
}

// UnfinishedRetryAfter is the delay after which a retry is likely to succeed.
const UnfinishedRetryAfter = 5 * time.Second

// Error returns the text that is sent to the caller.
func (e *UnfinishedError) Error() string {
	return "The outcome is unknown: the " + e.Noun + " may have been created. Send the same request again to get it."
}

// MissingKeyText is the detail of a 401 for a request without a key. It equals filter.MissingKeyText, so that all dialects give the same
// answer.
const MissingKeyText = "missing key: send it in the header Authorization: Bearer KEY"
