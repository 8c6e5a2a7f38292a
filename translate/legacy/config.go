package legacy

import (
	"net/http"
	"strconv"
	"time"
)

// Config holds the settings that both legacy dialects share. Use DefaultConfig as a base.
type Config struct {
	Answers AnswerMode
	// Brand is the platform's name in identifiers of clients, such as the parameter include<Brand>Templates and the member is<Brand> of
	// templates. It is a letter followed by letters and digits. If it is empty, Derived and the names that callers of the organisation use
	// apply.
	Brand string
	// Derived is the platform's name as derived from its address, or "".
	Derived string
	// Deprecated and Sunset are the dates of the Deprecation and Sunset headers, as YYYY-MM-DD. An empty Sunset omits the
	// header.
	Deprecated, Sunset string
}

// AnswerMode selects between actual and documented behaviour where the responses of the legacy APIs differed from their descriptions.
type AnswerMode string

// Values of AnswerMode.
const (
	Faithful AnswerMode = "faithful"
	Strict   AnswerMode = "strict"
)

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config { return Config{Answers: Faithful, Deprecated: "2026-11-15"} }

// Header returns the headers of every response: Deprecation with a structured-field date (RFC 9745, section 2.1), and Sunset if c has this
// date. c must be valid.
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
