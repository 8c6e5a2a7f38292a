package decisionlog

import (
	"errors"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config is the decision_log section.
type Config struct {
	// File writes events to a file, one JSON object per line. Default: none.
	File *File `yaml:"file"`
	// Stdout writes them to standard output. Default: false.
	Stdout bool `yaml:"stdout"`
	// Service posts them to an HTTP service. Default: none.
	Service *Service `yaml:"service"`
	// Mask lists more places to hide, as pointers below the event
	// (/input/request/body/args); * stands for any one member or item. The value
	// is replaced by "***". Default: none beside the built-in ones.
	Mask []string `yaml:"mask"`
	// Buffer is how many events may wait. Default 4096.
	Buffer int `yaml:"buffer"`
	// BufferBytes is how long the bodies in waiting events may be together, as
	// they were sent; in memory they take a few times that. Default 32 MB.
	BufferBytes int64 `yaml:"buffer_bytes"`
	// SampleAllowed is the share of decisions without anything to say that are
	// recorded, from 0 to 1. Denials, warnings, shadow results, exceptions,
	// changes and errors always are. Default 1.
	SampleAllowed float64 `yaml:"sample_allowed"`
	// Labels are put on every event. Default: none.
	Labels map[string]string `yaml:"labels"`
}

// File is a log file of this package's own.
type File struct {
	// Path is where it is; its directory must exist.
	Path string `yaml:"path"`
	// MaxBytes is the size at which it is put aside. Default 100 MB.
	MaxBytes int64 `yaml:"max_bytes"`
	// Keep is how many files are kept aside, as Path.1, Path.2, ... Default 5.
	Keep int `yaml:"keep"`
}

// Service is an HTTP service that takes batches as OPA sends them: a gzipped
// JSON array, posted.
type Service struct {
	// URL is the whole address, e.g. https://logs.example/logs.
	URL string `yaml:"url"`
	// TokenFile holds a bearer token, read for every batch. Default: none.
	TokenFile string `yaml:"token_file"`
	// Batch is the most events in one post. Default 500.
	Batch int `yaml:"batch"`
	// Delay is how long an event may wait for others. Default 5s.
	Delay time.Duration `yaml:"delay"`
	// Timeout bounds one post. Default 10s.
	Timeout time.Duration `yaml:"timeout"`
}

// DefaultConfig records everything nowhere: name a sink.
func DefaultConfig() Config { return Config{Buffer: 4096, BufferBytes: 32_000_000, SampleAllowed: 1} }

// Validate reports every fault, each with its path below the section.
func (c Config) Validate() error {
	var errs []error
	bad := func(path, format string, args ...any) { errs = append(errs, fault.Errorf(path, format, args...)) }
	if c.Buffer < 1 {
		bad("buffer", "must be positive, got %d", c.Buffer)
	}
	if c.BufferBytes < 1 {
		bad("buffer_bytes", "must be positive, got %d", c.BufferBytes)
	}
	if !(c.SampleAllowed >= 0 && c.SampleAllowed <= 1) {
		bad("sample_allowed", "must be between 0 and 1, got %v", c.SampleAllowed)
	}
	for i, m := range c.Mask {
		if _, err := parseMask(m); err != nil {
			bad(fault.Index("mask", i), "%w", err)
		}
	}
	if f := c.File; f != nil {
		if f.Path == "" {
			bad("file.path", "is required")
		}
		if f.MaxBytes < 0 {
			bad("file.max_bytes", "must not be negative, got %d", f.MaxBytes)
		}
		if f.Keep < 0 {
			bad("file.keep", "must not be negative, got %d", f.Keep)
		}
	}
	if s := c.Service; s != nil {
		u, err := url.Parse(s.URL)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil {
			bad("service.url", "must be http or https with a host and without credentials")
		}
		if s.Batch < 0 || s.Delay < 0 || s.Timeout < 0 {
			bad("service", "batch, delay and timeout must not be negative")
		}
	}
	return errors.Join(errs...)
}
