package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// Severities of a finding, in the terms of SARIF and GitHub.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// finding is a fault or warning about a configuration.
type finding struct {
	Severity string `json:"severity"`
	strictyaml.Fault
}

// findings returns the faults in err. An error without a position is assigned to the file at path. A fault in an organisation's own Rego
// has its position in the Rego file.
func findings(path, severity string, err error) []finding {
	found := []finding{}
	for _, err := range policyconfig.Joined(err) {
		f, ok := errors.AsType[strictyaml.Fault](err)
		if !ok {
			f = strictyaml.Fault{File: path, Message: err.Error()}
		}
		if rego, ok := errors.AsType[*policies.Error](err); ok && rego.Row > 0 {
			f.File, f.Line, f.Column, f.Message = rego.File, rego.Row, rego.Col, rego.Message
		}
		found = append(found, finding{severity, f})
	}
	return found
}

// text returns the message without the position.
func (f *finding) text() string {
	bare := f.Fault
	bare.File, bare.Line = "", 0
	return bare.Error()
}

// writeFindings writes findings as JSON.
func writeFindings(w io.Writer, found []finding) error { return writeJSON(w, found) }

// writeAnnotations writes a GitHub workflow command for each finding.
func writeAnnotations(w io.Writer, found []finding) error {
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range found {
		place := ""
		if f.Line > 0 {
			place = fmt.Sprintf(",line=%d,col=%d", f.Line, f.Column)
		}
		if _, err := fmt.Fprintf(w, "::%s file=%s%s::%s\n", f.Severity, property.Replace(filepath.ToSlash(f.File)), place, message.Replace(f.text())); err != nil {
			return err
		}
	}
	return nil
}

// writeSARIF writes findings as a SARIF 2.1.0 log.
func writeSARIF(w io.Writer, found []finding) error {
	type object = map[string]any
	const rule = "configuration"
	results := make([]object, len(found))
	for i, f := range found {
		place := object{"artifactLocation": object{"uri": (&url.URL{Path: filepath.ToSlash(f.File)}).String()}}
		if f.Line > 0 {
			place["region"] = object{"startLine": f.Line, "startColumn": f.Column}
		}
		results[i] = object{
			"ruleId": rule, "level": f.Severity, "message": object{"text": f.text()},
			"locations": []object{{"physicalLocation": place}},
		}
	}
	return writeJSON(w, object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{
			"tool":       object{"driver": object{"name": "tollgate", "version": version(), "rules": []object{{"id": rule}}}},
			"columnKind": "unicodeCodePoints", "results": results,
		}},
	})
}
