package settings

import (
	"errors"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Audit is the audit section.
type Audit struct {
	File    *logfile.File  `yaml:"file" doc:"writes a line before and after each change, one JSON object per line; a change that cannot be written is not carried out. A gateway has a file of its own"`
	Sync    bool           `yaml:"sync" doc:"waits until an intent is on the disk before the change is made"`
	OTLP    Receiver       `yaml:"otlp" doc:"receiver that each line is delivered to as a log record whose body is the line, at least once; where it stands is kept in the file's path with .otlp"`
	Webhook webhook.Config `yaml:"webhook" doc:"receiver that each line is delivered to as an event, likewise, with .webhook; without url there is none"`
}

// Validate reports every fault, each with its path below the section.
func (a *Audit) Validate() error {
	errs := fault.Found{fault.At("otlp", a.OTLP.Validate()), fault.At("webhook", a.Webhook.Validate())}
	if a.File != nil {
		errs = append(errs, fault.At("file", a.File.Validate()))
	}
	errs.If(a.File == nil && (a.OTLP.Endpoint != "" || !a.Webhook.URL.IsZero()), "file", "is required: what is shipped is read from there")
	errs.If(a.Webhook.Format == webhook.FormatSlack, "webhook.format", "must be event: a line is shipped as it is")
	return errors.Join(errs...)
}
