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

// Value is a text among the parameters of an entry whose schema names a format.
type Value struct {
	// Path is its place below the organisation's section.
	Path string
	// Format is the schema's name of it, Text the value.
	Format, Text string
}

// Values lists such texts of the entries of the library's policies.
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

// Warnings reports parameters that contradict themselves and yet do no harm, or that leave
// a policy nothing to let pass. Each has its path below the section.
func Warnings(entries []policyconfig.Entry) []error {
	var out []error
	given := make([]map[string]any, len(entries)) // parameters of entries of the library, with defaults
	for i, e := range entries {
		if p, ok := Lookup(e.Policy); ok {
			given[i], _ = p.params.check(e.Params) // its faults are Check's
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

// doubtful says why a text of a format is not one, "" if it can.
func doubtful(format, text string) string {
	switch {
	case format == "repository" && strings.Contains(text, "://"):
		return "begins with a scheme, which no image does"
	case format == "repository" && strings.Contains(text, "*"):
		return fmt.Sprintf(`has a "*", which no image has: %q allows all below it`, strings.TrimRight(text, "/*"))
	case format == "variable" && strings.ContainsAny(text, " \t="):
		return "is not the name of a variable, which has no spaces and no equals sign: it never matches"
	case format == "port" && !isPort(text):
		return "has no port from 1 to 65535"
	case format == "grant" && !isGrant(text):
		return "is the kind and verb of no operation"
	case format == "gpu" && !gpuType.MatchString(text):
		return `is not the id of a GPU type, as "NVIDIA GeForce RTX 4090" is`
	case format == "data_center" && !strings.HasSuffix(text, "*") && !dataCenter.MatchString(text):
		return `is not the id of a data centre, as "EU-RO-1" is`
	}
	return ""
}

// What ids of the platform's catalog look like.
var (
	gpuType    = regexp.MustCompile(`^(NVIDIA|AMD|Tesla) .`)
	dataCenter = regexp.MustCompile(`^[A-Z]+(-[A-Z]+)+-[0-9]+$`)
)

// isPort reports whether ports of the spelling 8888/http, or http for all, exist.
func isPort(text string) bool {
	number, _, one := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	return !one || err == nil && n >= 1 && n <= 1<<16-1
}

// isGrant reports whether an operation is of a kind and verb, * for any.
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
