package ledger

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Labels are a caller's description of a resource for readers of costs: pairs
// name=value, sorted and separated by commas. "" is none.
type Labels string

const (
	// maxLabels bounds how many labels one resource has, maxLength the part read of
	// them, in bytes.
	maxLabels = 8
	maxLength = 1024
)

var (
	labelName  = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,31}$`)
	labelValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,62}$`)
)

// LabelRule is a label that callers may set.
type LabelRule struct {
	Name     string   `yaml:"name,required" doc:"of the label: at most 32 of a-z, 0-9 and _.-, a letter first"`
	Values   []string `yaml:"values" doc:"values that it may have; empty is any"`
	Required bool     `yaml:"required" doc:"nothing that costs money is made without it by a key that may set it"`
}

// Validate reports every fault.
func (r LabelRule) Validate() error {
	var errs fault.Found
	errs.If(!labelName.MatchString(r.Name), "name", "must be at most 32 of a-z, 0-9 and _.-, a letter first")
	for i, v := range r.Values {
		errs.If(!labelValue.MatchString(v), fault.Index("values", i), "must be at most 63 letters, digits and ._/:@-, a letter or digit first")
	}
	return errors.Join(errs...)
}

// ReadLabels reads labels as a header has them: a list (RFC 9110, section 5.6.1) of
// name=value. It refuses labels that the rules do not allow, with a message for each fault
// that begins with its place, e.g. "Header[0]" or "Header.project" for one named
// Header, and never repeats a value.
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
			continue // RFC 9110, section 5.6.1.2
		}
		name, value, isPair := strings.Cut(pair, "=")
		_, twice := set[name]
		at := slices.IndexFunc(rules, func(r LabelRule) bool { return r.Name == name })
		switch {
		case !isPair || !labelName.MatchString(name):
			refuse("[%d]: must be name=value, the name at most 32 of a-z, 0-9 and _.-, a letter first", i)
		case twice:
			refuse(".%s: must not be given twice", name)
		case at < 0:
			refuse(".%s: this key may not set it%s", name, allowed(rules))
		case !labelValue.MatchString(value):
			refuse(".%s: must be at most 63 letters, digits and ._/:@-, a letter or digit first", name)
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

// allowed says which labels may be set.
func allowed(rules []LabelRule) string {
	if len(rules) == 0 {
		return ", nor any other"
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

// Map returns the values by name, nil for none.
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

// Get returns the value of a label, "" if it is not set.
func (l Labels) Get(name string) string { return l.Map()[name] }

// with adds a label that is not set.
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
