package legacy

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// Noun names a kind of resource the way clients of the retired interfaces know it
// from "... not found".
type Noun string

// The nouns.
const (
	NounPod        Noun = "pod"
	NounEndpoint   Noun = "endpoint"
	NounTemplate   Noun = "template"
	NounVolume     Noun = "network volume"
	NounRegistry   Noun = "container registry auth"
	NounDataCenter Noun = "data center"
	NounCluster    Noun = "cluster"
	NounAccount    Noun = "account"
	NounCatalog    Noun = "catalog entry"
	NounTerminated Noun = "pod to terminate"
)

// Purpose tells the purpose of a v2 call, so that a dialect can word its failure.
type Purpose struct {
	// Verb is the operation, e.g. "create template".
	Verb string
	// Noun is the missing thing in a 404.
	Noun Noun
	// BodyID is the id of the missing thing when it stands in the caller's body and
	// not in the path; "" otherwise.
	BodyID string
	// MayBeShortage tells that a 400 may be a shortage.
	MayBeShortage bool
}

// Purpose is the purpose of a call that does something to one resource of the kind.
func (n Noun) Purpose(verb string) Purpose { return Purpose{Verb: verb + " " + string(n), Noun: n} }

// RefusedError is a v2 call that did not succeed.
type RefusedError struct {
	Purpose
	// Response is the refusal, or a success that cannot be used; nil when there
	// was no answer.
	Response *translate.Response
	// Err is why there was no answer.
	Err error
}

// Error implements error.
func (r *RefusedError) Error() string {
	if r.Response == nil {
		return fmt.Sprintf("%s: %v", r.Verb, r.Err)
	}
	return fmt.Sprintf("%s: status %d: %s", r.Verb, r.Response.Status, r.Response.Detail())
}

// Unwrap returns Err.
func (r *RefusedError) Unwrap() error { return r.Err }

// TextBroken is the text of a fault for callers; it must not change.
const TextBroken = "Something went wrong. Please try again later or contact support."

// Broken is the text of a server error for callers. Words of the gateway's own are for
// them; the platform's are not, and a fault has none. Clients look for "try again later".
func Broken(r *translate.Response) string {
	if r == nil || r.Kind == "" || r.Kind == "internal" || r.Detail() == "" {
		return TextBroken
	}
	return r.Detail() + ". Please try again later."
}

// IsMissing reports whether the error is a 404 of the platform.
func IsMissing(err error) bool { return statusOf(err) == http.StatusNotFound }

func statusOf(err error) int {
	if r, ok := errors.AsType[*RefusedError](err); ok && r.Response != nil {
		return r.Response.Status
	}
	return 0
}

// InvalidError is a wish that cannot be met, found out before any call that changes
// something.
type InvalidError struct {
	// Field is the caller's name of the field, "" when it is about none.
	Field string
	Text  string
}

// Error implements error.
func (i *InvalidError) Error() string {
	if i.Field == "" {
		return i.Text
	}
	return i.Field + ": " + i.Text
}

func invalid(field, format string, args ...any) error {
	return &InvalidError{field, fmt.Sprintf(format, args...)}
}
