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
func Bad(parameter, format string, args ...any) Faults {
	return Faults{{Parameter: parameter, Detail: fmt.Sprintf(format, args...)}}
}

// Error implements error.
func (f Fault) Error() string { return f.Parameter + ": " + f.Detail }

// Faults are all that is wrong with the parameters of a question.
type Faults []Fault

// Error implements error.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "; ")
}

// Status is that of the answer: 404 if something named is not there, and 400 otherwise.
func (f Faults) Status() int {
	if slices.ContainsFunc(f, func(fault Fault) bool { return fault.Missing }) {
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// Refusal is why a question is not answered, with the status that says so.
type Refusal struct {
	Status int
	Reason string
}

// Error implements error.
func (e Refusal) Error() string { return e.Reason }

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
