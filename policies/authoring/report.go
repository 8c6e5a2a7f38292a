package authoring

import (
	"fmt"
	"strconv"
	"time"
)

// Outcome is the outcome of a test.
type Outcome string

// Outcomes.
const (
	// Pass means that the rule is true.
	Pass Outcome = "pass"
	// Fail means that the rule is undefined or not true.
	Fail Outcome = "fail"
	// Error means that the rule could not be evaluated because of an error of a built-in function, a conflict, or a timeout.
	Error Outcome = "error"
	// Skip means that the name of the test starts with todo_.
	Skip Outcome = "skip"
)

// Place is a position in a file. Row and Col start at 1.
type Place struct {
	File string `json:"file"`
	Row  int    `json:"row"`
	Col  int    `json:"col"`
}

// String returns the position in the form file:row:col.
func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Row, p.Col) }

// Result is the result of one test.
type Result struct {
	// Name is the package and rule of the test, such as policies.quiet_test.test_allow.
	Name string `json:"name"`
	// Place is the position of the rule.
	Place Place `json:"place"`
	// Outcome is the outcome of the test.
	Outcome Outcome `json:"outcome"`
	// Took is how long the test ran.
	Took time.Duration `json:"took_ns"`
	// FailedAt is the expression that failed. It is nil if the test did not fail, or if no single expression can be identified as the
	// cause.
	FailedAt *Failed `json:"failed_at,omitempty"`
	// Cases lists the failed cases of a test that has several cases, test_x[name].
	Cases []string `json:"cases,omitempty"`
	// Message is the error message.
	Message string `json:"message,omitempty"`
	// Output is the output of print.
	Output string `json:"output,omitempty"`
}

// Failed is an expression that was undefined or false.
type Failed struct {
	Place
	// Text is the source of the expression.
	Text string `json:"text"`
	// Values is the expression annotated with the values of its parts, in plain text.
	Values string `json:"values"`
}

// Lines is a range of lines, First to Last inclusive.
type Lines struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// String returns the range in the form "7" or "7-9".
func (l Lines) String() string {
	if l.First == l.Last {
		return strconv.Itoa(l.First)
	}
	return fmt.Sprintf("%d-%d", l.First, l.Last)
}

// File is the test coverage of one file.
type File struct {
	// Name is the path of the file.
	Name string `json:"name"`
	// Covered and Missed count the lines that contain a rule or an expression.
	Covered int `json:"covered"`
	Missed  int `json:"missed"`
	// NotCovered lists the missed lines in order.
	NotCovered []Lines `json:"not_covered,omitempty"`
}

// Percent returns the percentage of covered lines, or 100 if the file has no lines to cover.
func (f File) Percent() float64 { return percent(f.Covered, f.Missed) }

// Report is the result of a test run.
type Report struct {
	// Results lists the tests, sorted by position.
	Results []Result `json:"results"`
	// Files lists the coverage of the policies, sorted by name. Tests and library are not included.
	Files []File `json:"files"`
}

// Count returns the number of tests with an outcome.
func (r *Report) Count(o Outcome) int {
	n := 0
	for _, t := range r.Results {
		if t.Outcome == o {
			n++
		}
	}
	return n
}

// Passed reports whether at least one test ran and no test failed.
func (r *Report) Passed() bool {
	return r.Count(Pass) > 0 && r.Count(Fail) == 0 && r.Count(Error) == 0
}

// Coverage returns the percentage of covered lines in all files.
func (r *Report) Coverage() float64 {
	covered, missed := 0, 0
	for _, f := range r.Files {
		covered += f.Covered
		missed += f.Missed
	}
	return percent(covered, missed)
}

func percent(covered, missed int) float64 {
	if covered+missed == 0 {
		return 100
	}
	return 100 * float64(covered) / float64(covered+missed)
}
