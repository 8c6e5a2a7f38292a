package ledger

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Labels are a caller's labels of a resource for cost reports: name=value pairs, sorted and separated by commas. The empty string means
// no labels.
type Labels string

const (
	// maxLabels is the largest number of labels of a resource, and maxLength the largest length in bytes of the text with the labels.
	maxLabels = 8
	maxLength = 1024
)

var (
	labelName  = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,31}$`)
	labelValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,62}$`)
)

// LabelRule defines a label that callers may set.
type LabelRule struct {
	Name     string   `yaml:"name,required" doc:"at most 32 characters from a-z, 0-9 and _.-, starting with a letter"`
	Values   []string `yaml:"values" doc:"allowed values; empty allows any value"`
	Required bool     `yaml:"required" doc:"require the label when a key that may set it creates a billable resource"`
}

// Validate checks r and joins the errors it finds, each with its path.
func (r LabelRule) Validate() error {
	var errs fault.Found
	errs.If(!labelName.MatchString(r.Name), "name",
		"must start with a letter and have at most 32 characters, which can be a-z, 0-9, _, . and -")
	for i, v := range r.Values {
		errs.If(!labelValue.MatchString(v), fault.Index("values", i),
			"must be at most 63 letters, digits and ._/:@-, starting with a letter or digit")
	}
	return errors.Join(errs...)
}

// ReadLabels parses labels from a header field: a list (RFC 9110, section 5.6.1) of name=value pairs. It rejects labels that the rules do
// not allow. Each fault is a message that starts with the position, for example "Header[0]", or with the name of the label, for example
// "Header.project". Messages never contain values.
func ReadLabels(header, text string, rules []LabelRule) (labels Labels, faults []string) {
	refuse := func(format string, args ...any) { faults = append(faults, header+fmt.Sprintf(format, args...)) }
	if len(text) > maxLength {
		refuse(": must not be longer than %d bytes", maxLength)
		return "", faults
	}
	set := make(map[string]string)
	for i, pair := range strings.Split(text, ",") {
		pair = strings.Trim(pair, " \t")
		if pair == "" {
			continue // empty list element, see RFC 9110, section 5.6.1.2
		}
		name, value, isPair := strings.Cut(pair, "=")
		_, twice := set[name]
		at := slices.IndexFunc(rules, func(r LabelRule) bool { return r.Name == name })
		switch {
		case !isPair || !labelName.MatchString(name):
			refuse("[%d]: must be name=value, with a name of at most 32 characters from a-z, 0-9 and _.-, starting with a letter", i)
		case twice:
			refuse(".%s: must not be set twice", name)
		case at < 0:
			refuse(".%s: this key is not allowed to set this label%s", name, allowed(rules))
		case !labelValue.MatchString(value):
			refuse(".%s: must be at most 63 letters, digits and ._/:@-, starting with a letter or digit", name)
		case len(rules[at].Values) > 0 && !slices.Contains(rules[at].Values, value):
			refuse(".%s: must be one of %s", name, strings.Join(rules[at].Values, ", "))
		}
		set[name] = value
	}
	if len(set) > maxLabels {
		refuse(": must not have more than %d labels", maxLabels)
	}
	for _, r := range rules {
		if _, ok := set[r.Name]; r.Required && !ok {
			refuse(".%s: is required", r.Name)
		}
	}
	if len(faults) > 0 {
		return "", faults
	}
	return labelsOf(set), nil
}

// allowed describes the labels that may be set.
func allowed(rules []LabelRule) string {
	if len(rules) == 0 {
		return " or any other label"
	}
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.Name
	}
	return ", only " + strings.Join(names, ", ")
}

func labelsOf(set map[string]string) Labels {
	pairs := make([]string, 0, len(set))
	for name, value := range set {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return Labels(strings.Join(pairs, ","))
}

// Map returns the values by name, or nil without labels.
func (l Labels) Map() map[string]string {
	if l == "" {
		return nil
	}
	set := make(map[string]string)
	for pair := range strings.SplitSeq(string(l), ",") {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return set
}

// Get returns the value of a label, or "" if it is not set.
func (l Labels) Get(name string) string { return l.Map()[name] }

// with adds a label unless it is set already.
func (l Labels) with(name, value string) Labels {
	if value == "" {
		return l
	}
	set := l.Map()
	if set == nil {
		set = make(map[string]string, 1)
	}
	set[name] = value
	return labelsOf(set)
}
