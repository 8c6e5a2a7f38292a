package policyconfig

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// DecisionLog configures where and how decisions are logged.
type DecisionLog struct {
	File          *logfile.File     `yaml:"file" doc:"write events to a file, one JSON object per line"`
	Stdout        bool              `yaml:"stdout" doc:"write events to standard output"`
	Service       *Service          `yaml:"service" doc:"send events to an HTTP service"`
	Mask          []string          `yaml:"mask" doc:"additional values to replace by '***', as JSON Pointers into the event, such as /input/request/body/name, with * for any member or item" reload:"live"`
	Inputs        bool              `yaml:"inputs" doc:"record job inputs and language model messages and prompts, which are masked by default" reload:"live"`
	SampleAllowed float64           `yaml:"sample_allowed" doc:"fraction of allowed decisions to record, from 0 to 1. Denials, warnings, shadow results, exceptions, changes and errors are always recorded" reload:"live"`
	Labels        map[string]string `yaml:"labels" doc:"labels added to every event" reload:"live"`

	// Buffer is the number of events that can be queued.
	Buffer int `yaml:"-"`
	// BufferBytes limits the total size of the bodies in queued events, as they were sent. They use a few times as much memory.
	BufferBytes int64 `yaml:"-"`
}

// Service is an HTTP service that receives batches in OPA's format: a POST request with a gzipped JSON array.
type Service struct {
	URL       string           `yaml:"url" doc:"URL of the service, such as https://logs.example/logs"`
	TokenFile files.Credential `yaml:"token_file" doc:"file with a bearer token, read for every batch"`

	// Batch is the largest number of events in one request; 0 means 500.
	Batch int `yaml:"-"`
	// Delay is how long an event may wait for others; 0 means 5 s.
	Delay time.Duration `yaml:"-"`
}

// DefaultDecisionLog returns a configuration that records every decision and has no sink.
func DefaultDecisionLog() DecisionLog {
	return DecisionLog{Buffer: 4096, BufferBytes: 32_000_000, SampleAllowed: 1}
}

// Validate checks c and joins the errors it finds, each with its path.
func (c DecisionLog) Validate() error {
	var errs fault.Found
	errs.If(!(c.SampleAllowed >= 0 && c.SampleAllowed <= 1), "sample_allowed", "must be between 0 and 1, got %v", c.SampleAllowed)
	for i, m := range c.Mask {
		_, err := ParseMask(m)
		errs.If(err != nil, fault.Index("mask", i), "%w", err)
	}
	if c.File != nil {
		errs = append(errs, fault.At("file", c.File.Validate()))
	}
	if s := c.Service; s != nil {
		u, err := url.Parse(s.URL)
		errs.If(err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil, "service.url",
			"must be http or https with a host and without credentials")
		errs = append(errs, fault.At("service.url", egress.CheckPort(u)))
		errs.If(err == nil && u.Scheme == "http" && !s.TokenFile.IsZero() && !egress.Loopback(u.Hostname()), "service.url",
			"must be https if token_file is set, so that the token is encrypted")
	}
	return errors.Join(errs...)
}

// ParseMask parses a pointer whose tokens may be *.
func ParseMask(p string) ([]string, error) {
	if p == "" || p[0] != '/' {
		return nil, fmt.Errorf("%q is not a JSON Pointer", p)
	}
	parts := slices.Collect(jsontext.Pointer(p).Tokens())
	if parts[0] != "input" && parts[0] != "result" {
		return nil, fmt.Errorf("%q does not start with /input/ or /result/", p)
	}
	return parts, nil
}
