package row

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Fault is what is wrong with a parameter.
type Fault struct {
	Parameter string `json:"parameter"`
	Detail    string `json:"detail"`
	// Missing marks a name of something that there is not.
	Missing bool `json:"-"`
}

// Bad returns the fault of one parameter.
func Bad(parameter, format string, args ...any) FaultsError {
	return FaultsError{{Parameter: parameter, Detail: fmt.Sprintf(format, args...)}}
}

// FaultsError is all that is wrong with the parameters of a question.
type FaultsError []Fault

// Error implements error.
func (f FaultsError) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Parameter + ": " + fault.Detail
	}
	return strings.Join(lines, "; ")
}

// Status is that of the answer: 404 if something named is not there, and 400 otherwise.
func (f FaultsError) Status() int {
	if slices.ContainsFunc(f, func(fault Fault) bool { return fault.Missing }) {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// RefusedError is why a question is not answered, with the status that says so.
type RefusedError struct {
	Status int
	Reason string
}

// Error implements error.
func (e RefusedError) Error() string { return e.Reason }

// Nearest returns the name that was probably meant, "" if none is near: a third of its letters may differ.
func Nearest(written string, names []string) string {
	best, nearest := "", 1+max(min(2, len(written)/2), len(written)/3)
	for _, name := range names {
		if d := levenshtein.ComputeDistance(strings.ToLower(written), strings.ToLower(name)); d < nearest {
			best, nearest = name, d
		}
	}
	return best
}

func quoted(text string) string { return strconv.Quote(text) }
