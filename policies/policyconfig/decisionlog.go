package policyconfig

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// DecisionLog says where decisions are logged.
type DecisionLog struct {
	File          *logfile.File     `yaml:"file" doc:"writes events to a file, one JSON object per line"`
	Stdout        bool              `yaml:"stdout" doc:"writes them to standard output"`
	Service       *Service          `yaml:"service" doc:"posts them to an HTTP service"`
	Mask          []string          `yaml:"mask" doc:"lists more places to hide, as pointers below the event (/input/request/body/name); * stands for any one member or item. The value is replaced by '***'" reload:"live"`
	Inputs        bool              `yaml:"inputs" doc:"records the inputs of jobs, and the messages and prompts sent to language models, which are hidden otherwise" reload:"live"`
	SampleAllowed float64           `yaml:"sample_allowed" doc:"the share of decisions without anything to say that are recorded, 0 to 1; denials, warnings, shadow results, exceptions, changes and errors always are" reload:"live"`
	Labels        map[string]string `yaml:"labels" doc:"put on every event" reload:"live"`

	// Buffer is how many events may wait.
	Buffer int `yaml:"-"`
	// BufferBytes is the size of the bodies in waiting events together, as they were
	// sent; in memory they take a few times that.
	BufferBytes int64 `yaml:"-"`
}

// Service is an HTTP service that takes batches as OPA sends them: a gzipped
// JSON array, posted.
type Service struct {
	URL       string           `yaml:"url" doc:"the whole address, e.g. https://logs.example/logs"`
	TokenFile files.Credential `yaml:"token_file" doc:"holds a bearer token, read for every batch"`

	// Batch is the most events in one post; 0 is 500.
	Batch int `yaml:"-"`
	// Delay is how long an event may wait for others; 0 is 5 s.
	Delay time.Duration `yaml:"-"`
	// Timeout bounds one post; 0 is 10 s.
	Timeout time.Duration `yaml:"-"`
}

// DefaultDecisionLog records everything nowhere: name a sink.
func DefaultDecisionLog() DecisionLog {
	return DecisionLog{Buffer: 4096, BufferBytes: 32_000_000, SampleAllowed: 1}
}

// Validate reports every fault, each with its path below the section.
func (c DecisionLog) Validate() error {
	var errs fault.Found
	errs.If(!(c.SampleAllowed >= 0 && c.SampleAllowed <= 1), "sample_allowed", "must be between 0 and 1, got %v", c.SampleAllowed)
	for i, m := range c.Mask {
		if _, err := ParseMask(m); err != nil {
			errs.Add(fault.Index("mask", i), "%w", err)
		}
	}
	if c.File != nil {
		errs = append(errs, fault.At("file", c.File.Validate()))
	}
	if s := c.Service; s != nil {
		u, err := url.Parse(s.URL)
		errs.If(err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil, "service.url", "must be http or https with a host and without credentials")
		errs = append(errs, fault.At("service.url", egress.CheckPort(u)))
		errs.If(err == nil && u.Scheme == "http" && !s.TokenFile.IsZero() && !egress.Loopback(u.Hostname()), "service.url", "must be https with token_file: the token would travel unencrypted")
	}
	return errors.Join(errs...)
}

// ParseMask reads a pointer whose parts may be *.
func ParseMask(p string) ([]string, error) {
	if p == "" || p[0] != '/' {
		return nil, fmt.Errorf("%q is not a pointer", p)
	}
	parts := strings.Split(p[1:], "/")
	if parts[0] != "input" && parts[0] != "result" {
		return nil, fmt.Errorf("%q is neither below /input nor below /result", p)
	}
	for i, s := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return parts, nil
}
