package adminapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Fault describes an invalid parameter.
type Fault struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
	// Missing reports that Parameter names something that does not exist.
	Missing bool `json:"-"`
}

// BadParam returns the fault of one parameter.
func BadParam(parameter, format string, args ...any) FaultsError {
	return FaultsError{{Parameter: parameter, Detail: fmt.Sprintf(format, args...)}}
}

// FaultsError lists every fault of the parameters of a question.
type FaultsError []Fault

// Error implements error.
func (f FaultsError) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Parameter + ": " + fault.Detail
	}
	return strings.Join(lines, "; ")
}

// Status returns the status of the answer: 404 if a parameter names something that does not exist, and 400 otherwise.
func (f FaultsError) Status() int {
	if slices.ContainsFunc(f, func(fault Fault) bool { return fault.Missing }) {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// RefusedError is the reason for refusing a question, with the status of the answer.
type RefusedError struct {
	Status int
	Reason string
}

// Error implements error.
func (e RefusedError) Error() string { return e.Reason }

// ErrUnknownOrg is returned for an organisation that is not configured.
var ErrUnknownOrg = errors.New("unknown organisation")

// BadRequestError is a fault of a question that is not the fault of one parameter.
type BadRequestError struct{ Reason string }

// Error implements error.
func (e BadRequestError) Error() string { return e.Reason }

// StatusOf returns the status of the answer to a question that failed, and its detail for the asker; 0 without an error.
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
		return http.StatusNotFound, "name a configured organisation: org=ID"
	case isBad:
		return http.StatusBadRequest, bad.Reason
	case isRefused:
		return refused.Status, refused.Reason
	}
	return http.StatusServiceUnavailable, "the shared store does not answer"
}

// Nearest returns the name that was probably meant by a misspelt one, "" for none.
func Nearest(written string, names []string) string { return fault.Nearest(written, names) }

func quoted(text string) string { return strconv.Quote(text) }
