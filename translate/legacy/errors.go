package legacy

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tollgate-dev/tollgate/translate"
)

// Noun names a kind of resource as it appears in "... not found" messages of the legacy APIs.
type Noun string

// Nouns.
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

// Purpose describes why a v2 call is made. Dialects use it in error messages.
type Purpose struct {
	// Verb is the operation, for example "create template".
	Verb string
	// Noun is the kind of resource that a 404 reports as missing.
	Noun Noun
	// BodyID is the id of the missing resource if the caller gave the id in the body; otherwise it is "".
	BodyID string
	// MayBeShortage reports whether a 400 may be a capacity shortage.
	MayBeShortage bool
}

// Purpose returns the Purpose of a call about one resource of kind n. verb is the operation, for example "delete".
func (n Noun) Purpose(verb string) Purpose { return Purpose{Verb: verb + " " + string(n), Noun: n} }

// RefusedError is returned if a v2 call did not succeed.
type RefusedError struct {
	Purpose
	// Response is the refusal, or a success that has not the expected form. It is nil if no response arrived.
	Response *translate.Response
	// Err is the reason why no response arrived.
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

// TextBroken is the text sent to callers after a failure. It must not change, because clients compare it.
const TextBroken = "Something went wrong. Please try again later or contact support."

// Broken returns the text that is sent to callers for a server error. It includes details of a refusal by the gateway, but no details of
// the platform or of an internal error. Clients search for "try again later".
func Broken(r *translate.Response) string {
	if r == nil || r.Kind == "" || r.Kind == "internal" || r.Detail() == "" {
		return TextBroken
	}
	return r.Detail() + ". Please try again later."
}

// IsMissing reports whether err is a 404.
func IsMissing(err error) bool { return statusOf(err) == http.StatusNotFound }

// isGone reports whether err is a 404 for a resource that does not exist, and not for a resource hidden from the caller.
func isGone(err error) bool {
	r, ok := errors.AsType[*RefusedError](err)
	return ok && IsMissing(err) && !r.Response.Hidden
}

func statusOf(err error) int {
	if r, ok := errors.AsType[*RefusedError](err); ok && r.Response != nil {
		return r.Response.Status
	}
	return 0
}

// InvalidError means that a setting in the request is invalid. If it is returned, the request has not changed any resource.
type InvalidError struct {
	// Field is the caller's name of the field. It is "" if the error is not about a single field.
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
