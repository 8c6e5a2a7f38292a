package legacy

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config holds the settings of both legacy dialects. Start from
// DefaultConfig.
type Config struct {
	Answers    AnswerMode `yaml:"answers" doc:"'faithful' answers as the retired interfaces really did, for which their clients were written; 'strict' answers as their descriptions said. See docs/v1.md"`
	Brand      string     `yaml:"brand" doc:"the platform's name as clients spell it inside identifiers: the parameter include<Brand>Templates, the member is<Brand> of templates. Letters and digits. Empty is the name in the registered domain of platform.base_url, Acme of rest.acme.io, beside any that a caller of the organisation spells; isPlatform where there is none"`
	Deprecated string     `yaml:"deprecated" doc:"the day the interfaces were retired, sent in the Deprecation header (RFC 9745), as YYYY-MM-DD"`
	Sunset     string     `yaml:"sunset" doc:"the day the translations may end, sent in the Sunset header (RFC 8594), as YYYY-MM-DD, not before deprecated. Empty names none"`
	// Host is that of the platform's address.
	Host string `yaml:"-"`
}

// AnswerMode says whose word counts where the retired interfaces did not keep to
// their descriptions.
type AnswerMode string

// The values of Answers.
const (
	Faithful AnswerMode = "faithful"
	Strict   AnswerMode = "strict"
)

// Values lists the values.
func (AnswerMode) Values() []string { return []string{string(Faithful), string(Strict)} }

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config { return Config{Answers: Faithful, Deprecated: "2026-11-15"} }

// Validate returns all faults joined, each with the path of its setting.
func (c Config) Validate() error {
	var faults fault.Found
	faults.If(c.Brand != "" && !brandPattern.MatchString(c.Brand), "brand", "%q is not a name of letters and digits", c.Brand)
	deprecated, err := time.Parse(time.DateOnly, c.Deprecated)
	faults.If(err != nil, "deprecated", "%q is not a date like 2026-11-15", c.Deprecated)
	if c.Sunset == "" {
		return errors.Join(faults...)
	}
	sunset, err := time.Parse(time.DateOnly, c.Sunset)
	switch {
	case err != nil:
		faults.Add("sunset", "%q is not a date like 2026-11-15", c.Sunset)
	case sunset.Before(deprecated):
		faults.Add("sunset", "%s is before deprecated (%s), which RFC 9745 forbids", c.Sunset, c.Deprecated)
	}
	return errors.Join(faults...)
}

// Header returns the header fields of every answer: since when the interfaces are
// retired, as a structured-field date (RFC 9745 section 2.1), and until when they
// are translated, if that is known. c is valid.
func (c Config) Header() http.Header {
	h := http.Header{}
	if t, err := time.Parse(time.DateOnly, c.Deprecated); err == nil {
		h.Set("Deprecation", "@"+strconv.FormatInt(t.Unix(), 10))
	}
	if t, err := time.Parse(time.DateOnly, c.Sunset); err == nil {
		h.Set("Sunset", t.Format(http.TimeFormat))
	}
	return h
}
