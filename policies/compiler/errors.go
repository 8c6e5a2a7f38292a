package compiler

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/regosandbox"
)

// LocateErrors converts an error of OPA's parser or compiler, which may contain several, into errors with positions.
func LocateErrors(org string, err error) error {
	return located(org, err, func(string) string { return "" })
}

// faultAt returns a fault at a position in the Rego of a policy.
func faultAt(org, policy string, at *ast.Location, message string) error {
	return &policyconfig.Error{Org: org, Policy: policy, File: at.File, Row: at.Row, Col: at.Col, Message: message}
}

// located also adds the policy; policyOf returns the policy in a file.
func located(org string, err error, policyOf func(file string) string) error {
	var all ast.Errors
	if !errors.As(err, &all) {
		one, ok := errors.AsType[*ast.Error](err)
		if !ok {
			return &policyconfig.Error{Org: org, Message: err.Error()}
		}
		all = ast.Errors{one}
	}
	out := make([]error, 0, len(all))
	for _, e := range all {
		le := &policyconfig.Error{Org: org, Message: e.Code + ": " + e.Message + wanted(e)}
		if name, undefined := strings.CutPrefix(e.Message, "undefined function "); undefined {
			if text, off := regosandbox.Explain(name); off {
				le.Message = e.Code + ": " + text
			}
		}
		if e.Location != nil {
			le.File, le.Row, le.Col = e.Location.File, e.Location.Row, max(e.Location.Col, 1) // the end of a file has no column
			le.Policy = policyOf(le.File)
		}
		out = append(out, le)
	}
	return errors.Join(out...)
}

// maxWanted limits the number of types in an error; some are large.
const maxWanted = 300

// wanted describes the found type and the accepted types of a type error. It returns "" if they are unknown.
func wanted(e *ast.Error) string {
	var parts []string
	switch d := e.Details.(type) {
	case nil:
	case *ast.RefErrInvalidDetail:
		known := make([]string, 0, len(d.OneOf))
		for _, v := range d.OneOf {
			known = append(known, strings.Trim(v.String(), `"`))
		}
		if len(known) == 0 {
			return ""
		}
		if near := nearest(strings.Trim(d.Ref[d.Pos].String(), `"`), known); near != "" {
			return fmt.Sprintf(", did you mean %q?", near)
		}
		parts = []string{fmt.Sprintf("%s has %s", d.Ref[:d.Pos], strings.Join(known, ", "))}
	default:
		for _, line := range e.Details.Lines() {
			name, text, _ := strings.Cut(strings.TrimSpace(line), ":")
			if text = strings.TrimSpace(text); text != "" && strings.TrimSpace(name) != "hint" {
				parts = append(parts, strings.TrimSpace(name)+" "+text)
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.ReplaceAll(strings.Join(parts, ", "), ", ???)", ")") // the result type, which is unknown
	if len(text) > maxWanted {
		text = strings.ToValidUTF8(text[:maxWanted], "") + "..."
	}
	return ": " + text
}

// nearest returns the known name closest to a possibly misspelled name, or "".
func nearest(name string, known []string) string {
	best, least := "", 1+len(name)/3
	for _, k := range known {
		if d := levenshtein.ComputeDistance(name, k); d <= least {
			best, least = k, d-1
		}
	}
	return best
}
