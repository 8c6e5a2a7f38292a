package authoring

import (
	"fmt"
	"strconv"
	"time"
)

// Outcome is how a test ended.
type Outcome string

// The outcomes.
const (
	// Pass: the rule is true.
	Pass Outcome = "pass"
	// Fail: it is undefined or anything but true.
	Fail Outcome = "fail"
	// Error: it could not be evaluated: an error of a built-in function, a
	// conflict, too much time.
	Error Outcome = "error"
	// Skip: its name begins with todo_.
	Skip Outcome = "skip"
)

// Place is a place in a file. Row and Col begin with 1.
type Place struct {
	File string `json:"file"`
	Row  int    `json:"row"`
	Col  int    `json:"col"`
}

// String is file:row:col.
func (p Place) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Row, p.Col) }

// Result is one test.
type Result struct {
	// Name is the test's package and rule, e.g. policies.quiet_test.test_allow.
	Name string `json:"name"`
	// Place is where the rule is.
	Place Place `json:"place"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Took is how long it ran.
	Took time.Duration `json:"took_ns"`
	// FailedAt is the expression that did not hold, with its text; nil when the
	// test did not fail or no single expression is to blame.
	FailedAt *Failed `json:"failed_at,omitempty"`
	// Cases lists the failed cases of a test with cases, test_x[name].
	Cases []string `json:"cases,omitempty"`
	// Message is the error.
	Message string `json:"message,omitempty"`
	// Output is the output of print.
	Output string `json:"output,omitempty"`
}

// Failed is an expression that did not hold.
type Failed struct {
	Place
	// Text is the expression as written.
	Text string `json:"text"`
	// Values is the expression with the values of its parts below it, for people.
	Values string `json:"values"`
}

// Lines are the rows First to Last of a file.
type Lines struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// String is "7" or "7-9".
func (l Lines) String() string {
	if l.First == l.Last {
		return strconv.Itoa(l.First)
	}
	return fmt.Sprintf("%d-%d", l.First, l.Last)
}

// File is how much of a file the tests reach.
type File struct {
	// Name is the file's path.
	Name string `json:"name"`
	// Covered and Missed count the lines that hold a rule or an expression.
	Covered int `json:"covered"`
	Missed  int `json:"missed"`
	// NotCovered lists the missed lines, in order.
	NotCovered []Lines `json:"not_covered,omitempty"`
}

// Percent is the share of lines covered; 100 for a file without any.
func (f File) Percent() float64 { return percent(f.Covered, f.Missed) }

// Report is the result of a run.
type Report struct {
	// Results are the tests by place.
	Results []Result `json:"results"`
	// Files are the policies by name, tests and library left out.
	Files []File `json:"files"`
}

// Count is how many tests ended so.
func (r *Report) Count(o Outcome) int {
	n := 0
	for _, t := range r.Results {
		if t.Outcome == o {
			n++
		}
	}
	return n
}

// Passed tells that there was a test, and none failed.
func (r *Report) Passed() bool {
	return r.Count(Pass) > 0 && r.Count(Fail) == 0 && r.Count(Error) == 0
}

// Coverage is the share of lines covered over all files, in percent.
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
