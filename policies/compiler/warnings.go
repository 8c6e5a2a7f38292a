package compiler

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// Value is a string parameter of an entry whose schema has a format.
type Value struct {
	// Path is the path of the parameter, relative to the organisation's configuration.
	Path string
	// Format is the format in the schema. Text is the value.
	Format, Text string
}

// Values returns the strings in the parameters of library policies whose schema has a format.
func Values(entries []policyconfig.Entry) []Value {
	var out []Value
	for i, e := range entries {
		p, ok := Lookup(e.Policy)
		if !ok {
			continue
		}
		for _, spec := range p.params.list {
			eachFormat(spec.Name, spec.Schema, e.Params[spec.Name], func(path, format, value string) {
				out = append(out, Value{Path: fault.Index("policies", i) + ".params." + path, Format: format, Text: value})
			})
		}
	}
	return out
}

// Warnings returns a warning for each parameter that is contradictory but harmless, or that makes a policy refuse every call. Each warning has
// its path, relative to the organisation's configuration.
func Warnings(entries []policyconfig.Entry) []error {
	var out []error
	given := make([]map[string]any, len(entries)) // parameters with defaults, for entries of library policies
	for i, e := range entries {
		if p, ok := Lookup(e.Policy); ok {
			given[i], _ = p.params.check(e.Params) // Check reports the errors
			out = append(out, fault.At(fault.Index("policies", i)+".params", errors.Join(contradictions(p.params.doubts, given[i])...)))
		}
	}
	for i := range entries {
		out = append(out, fault.At(fault.Index("policies", i), errors.Join(refusing(&entries[i])...)))
		out = append(out, redundancies(entries, given, i)...)
	}
	for _, v := range Values(entries) {
		if doubt := doubtful(v.Format, v.Text); doubt != "" {
			out = append(out, fault.Errorf(v.Path, "%q %s", v.Text, doubt))
		}
	}
	return out
}

// doubtful explains why a text cannot have the given format, or returns "".
func doubtful(format, text string) string {
	switch {
	case format == "repository" && strings.Contains(text, "://"):
		return "must not start with a URL scheme"
	case format == "repository" && strings.Contains(text, "*"):
		return fmt.Sprintf(`must not contain "*": use %q to allow all images below it`, strings.TrimRight(text, "/*"))
	case format == "variable" && strings.ContainsAny(text, " \t="):
		return "is not a variable name (no spaces, no equals sign) and never matches"
	case format == "port" && !isPort(text):
		return "must contain a port from 1 to 65535"
	case format == "grant" && !isGrant(text):
		return "does not match the kind and verb of any operation"
	case format == "gpu" && !gpuType.MatchString(text):
		return `is not the ID of a GPU type, such as "NVIDIA GeForce RTX 4090"`
	case format == "data_center" && !strings.HasSuffix(text, "*") && !dataCenter.MatchString(text):
		return `is not the ID of a data centre, such as "EU-RO-1"`
	}
	return ""
}

// Forms of IDs in the platform's catalog.
var (
	gpuType    = regexp.MustCompile(`^(NVIDIA|AMD|Tesla) .`)
	dataCenter = regexp.MustCompile(`^[A-Z]+(-[A-Z]+)+-[0-9]+$`)
)

// isPort reports whether a port such as 8888/http can exist, or http for all HTTP ports.
func isPort(text string) bool {
	number, _, one := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	return !one || err == nil && n >= 1 && n <= 1<<16-1
}

// isGrant reports whether any operation has the given kind and verb; * matches any.
func isGrant(text string) bool {
	kind, verb, _ := strings.Cut(text, ":")
	is := func(wanted, given string) bool { return wanted == "*" || wanted == given }
	return slices.ContainsFunc(operation.All(), func(r operation.Spec) bool {
		verbs := []operation.Verb{r.Verb}
		if r.Verb == operation.VerbAction {
			verbs = operation.Actions()
		}
		return is(kind, string(r.Kind)) && slices.ContainsFunc(verbs, func(v operation.Verb) bool { return is(verb, string(v)) })
	})
}
