package legacy

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config holds the settings that both legacy dialects share. Use DefaultConfig as a base.
type Config struct {
	Answers    AnswerMode `yaml:"answers" doc:"'faithful' reproduces the actual behaviour of the legacy APIs, which their clients expect; 'strict' follows their descriptions. See docs/v1.md"`
	Brand      string     `yaml:"brand" doc:"the platform's name in identifiers of clients, such as the parameter include<Brand>Templates and the member is<Brand> of templates. Letters and digits. Empty uses the name of the registered domain of platform.base_url (Acme for rest.acme.io) and the names that callers of the organisation use; isPlatform if there is none"`
	Deprecated string     `yaml:"deprecated" doc:"date on which the legacy APIs were deprecated, sent in the Deprecation header (RFC 9745), as YYYY-MM-DD"`
	Sunset     string     `yaml:"sunset" doc:"date on which the translation may end, sent in the Sunset header (RFC 8594), as YYYY-MM-DD, not before deprecated. Empty omits the header"`
	// Host is the host of the platform's address.
	Host string `yaml:"-"`
}

// AnswerMode selects between actual and documented behaviour where the legacy APIs deviated from their descriptions.
type AnswerMode string

// Values of AnswerMode.
const (
	Faithful AnswerMode = "faithful"
	Strict   AnswerMode = "strict"
)

// Values lists the valid values.
func (AnswerMode) Values() []string { return []string{string(Faithful), string(Strict)} }

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config { return Config{Answers: Faithful, Deprecated: "2026-11-15"} }

// Validate checks c and joins all errors, each with the path of its setting.
func (c Config) Validate() error {
	var faults fault.Found
	faults.If(c.Brand != "" && !brandPattern.MatchString(c.Brand), "brand", "must be a letter followed by at most 31 letters and digits, got %q", c.Brand)
	deprecated, err := time.Parse(time.DateOnly, c.Deprecated)
	faults.If(err != nil, "deprecated", "must be a date like 2026-11-15, got %q", c.Deprecated)
	if c.Sunset == "" {
		return errors.Join(faults...)
	}
	sunset, err := time.Parse(time.DateOnly, c.Sunset)
	switch {
	case err != nil:
		faults.Add("sunset", "must be a date like 2026-11-15, got %q", c.Sunset)
	case sunset.Before(deprecated):
		faults.Add("sunset", "must not be before deprecated (%s), got %s", c.Deprecated, c.Sunset)
	}
	return errors.Join(faults...)
}

// Header returns the headers of every response: Deprecation with a structured-field date (RFC 9745, section 2.1), and
// Sunset if that date is configured. c must be valid.
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
