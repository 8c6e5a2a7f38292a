package translate

import (
	"errors"
	"time"
)

// ErrAmbiguous is wrapped in an error of Caller.Call if the response was lost and the platform may have carried out the call.
var ErrAmbiguous = errors.New("the platform's response was lost")

// UnfinishedError is returned if it is unknown whether a call created its resource. The caller can send the same request again after
// UnfinishedRetryAfter to get the resource.
type UnfinishedError struct {
	// Noun is the kind of resource, such as "pod".
	Noun string
}

// UnfinishedRetryAfter is the delay after which a retry is likely to succeed.
const UnfinishedRetryAfter = 5 * time.Second

// Error returns the text that is sent to the caller.
func (e *UnfinishedError) Error() string {
	return "The outcome is unknown: the " + e.Noun + " may have been created. Send the same request again to get it."
}

// MissingKeyText is the detail of a 401 for a request without a key. It equals filter.MissingKeyText, so that all dialects give the same
// response.
const MissingKeyText = "missing key: send it in the header Authorization: Bearer KEY"
