package load

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"
)

// Error is one fault found while an organisation's policies were loaded.
type Error struct {
	// Org is the organisation; "" for a fault of the library.
	Org string
	// Policy is the policy at fault, as far as known.
	Policy string
	// File, Row and Col locate the fault; Row is 0 when it has no line.
	File     string
	Row, Col int
	// Path is the setting at fault, below the organisation's section; "" for a
	// fault of its Rego. With a File it is the setting that names the file.
	Path string
	// Message says what is wrong.
	Message string
}

// Error is the fault on one line, location first.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Row > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Row, e.Col)
		}
		b.WriteString(": ")
	}
	if e.Org != "" {
		fmt.Fprintf(&b, "org %s: ", e.Org)
	}
	if e.Policy != "" {
		fmt.Fprintf(&b, "policy %s: ", e.Policy)
	}
	if e.Path != "" && e.File == "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Located turns a fault of OPA's parser or compiler, which holds several,
// into located ones.
func Located(org string, err error) error {
	return located(org, err, func(string) string { return "" })
}

// located names the policy as well; policyOf returns that of a file.
func located(org string, err error, policyOf func(file string) string) error {
	var all ast.Errors
	if !errors.As(err, &all) {
		one, ok := errors.AsType[*ast.Error](err)
		if !ok {
			return &Error{Org: org, Message: err.Error()}
		}
		all = ast.Errors{one}
	}
	out := make([]error, 0, len(all))
	for _, e := range all {
		le := &Error{Org: org, Message: e.Code + ": " + e.Message}
		if e.Location != nil {
			le.File, le.Row, le.Col = e.Location.File, e.Location.Row, max(e.Location.Col, 1) // the end of a file has none
			le.Policy = policyOf(le.File)
		}
		out = append(out, le)
	}
	return errors.Join(out...)
}

// nearest is the known name a typing mistake away from name, or "".
func nearest(name string, known []string) string {
	best, least := "", 1+len(name)/3
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d <= least {
			best, least = k, d-1
		}
	}
	return best
}
