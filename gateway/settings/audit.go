package settings

import (
	"errors"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Audit configures the audit log.
type Audit struct {
	File    *logfile.File  `yaml:"file" doc:"audit log file, with one JSON object per line before and after each change; a change that cannot be logged is not carried out. Each gateway needs its own file"`
	Sync    bool           `yaml:"sync" doc:"flush the line to disk before a change is made"`
	OTLP    Receiver       `yaml:"otlp" doc:"OTLP receiver of the audit log: each line is delivered at least once as the body of a log record; the position is stored in the path of file with .otlp appended"`
	Webhook webhook.Config `yaml:"webhook" doc:"webhook that receives each line as an event, at least once; the position is stored in the path of file with .webhook appended. Without url, none"`
}

// Validate returns all faults, each with its path relative to the section.
func (a *Audit) Validate() error {
	errs := fault.Found{fault.At("otlp", a.OTLP.Validate()), fault.At("webhook", a.Webhook.Validate())}
	if a.File != nil {
		errs = append(errs, fault.At("file", a.File.Validate()))
	}
	errs.If(a.File == nil && (a.OTLP.Endpoint != "" || !a.Webhook.URL.IsZero()), "file",
		"is required: otlp and webhook read the lines from this file")
	errs.If(a.Webhook.Format == webhook.FormatSlack, "webhook.format", "must be event: lines are sent unchanged")
	return errors.Join(errs...)
}
