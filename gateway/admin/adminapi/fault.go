package adminapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Fault describes an invalid parameter.
type Fault struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
	// Missing is set if the parameter names something that does not exist.
	Missing bool `json:"-"`
}

// BadParam returns the fault of one parameter.
func BadParam(parameter, format string, args ...any) FaultsError {
	return FaultsError{{Parameter: parameter, Detail: fmt.Sprintf(format, args...)}}
}

// FaultsError lists the invalid parameters of a call.
type FaultsError []Fault

// Error implements error.
func (f FaultsError) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Parameter + ": " + fault.Detail
	}
	return strings.Join(lines, "; ")
}

// Status returns 404 if a parameter names something that does not exist, and 400 otherwise.
func (f FaultsError) Status() int {
	if slices.ContainsFunc(f, func(fault Fault) bool { return fault.Missing }) {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// RefusedError is the error for a refused call. It contains the status of the response.
type RefusedError struct {
	Status int
	Reason string
}

// Error implements error.
func (e RefusedError) Error() string { return e.Reason }

// ErrUnknownOrg is returned for an organisation that is not configured.
var ErrUnknownOrg = errors.New("unknown organisation")

// BadRequestError is the error for an invalid call if the fault cannot be attributed to one parameter.
type BadRequestError struct{ Reason string }

// Error implements error.
func (e BadRequestError) Error() string { return e.Reason }

// StatusOf returns the status and the detail of the response to a failed call, or 0 if err is nil.
func StatusOf(err error) (status int, detail string) {
	faults, _ := errors.AsType[FaultsError](err)
	bad, isBad := errors.AsType[BadRequestError](err)
	refused, isRefused := errors.AsType[RefusedError](err)
	switch {
	case err == nil:
		return 0, ""
	case faults != nil:
		return faults.Status(), faults.Error()
	case errors.Is(err, ErrUnknownOrg):
		return http.StatusNotFound, "unknown organisation: set org to a configured id"
	case isBad:
		return http.StatusBadRequest, bad.Reason
	case isRefused:
		return refused.Status, refused.Reason
	}
	return http.StatusServiceUnavailable, "shared store unavailable"
}

// Nearest returns the known name closest to a misspelled name, or "".
func Nearest(written string, names []string) string { return fault.Nearest(written, names) }
