package settings

import (
	"errors"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Audit configures the audit log.
type Audit struct {
	File    *logfile.File  `yaml:"file" doc:"audit log file. The gateway writes a line with a JSON object before and after each change, and refuses a change that it cannot log. Each gateway needs its own file"`
	Sync    bool           `yaml:"sync" doc:"flush the line in the audit log to disk before the change is made"`
	OTLP    Receiver       `yaml:"otlp" doc:"OTLP receiver of the audit log. Each line is delivered at least once, as the body of a log record. The delivery position is stored at the path of file with .otlp appended"`
	Webhook webhook.Config `yaml:"webhook" doc:"webhook that receives each line of the audit log as an event, at least once. The delivery position is stored at the path of file with .webhook appended. If url is not set, no webhook is called"`
}

// Validate returns all faults, each with its path relative to the section.
func (a *Audit) Validate() error {
	errs := fault.Found{fault.At("otlp", a.OTLP.Validate()), fault.At("webhook", a.Webhook.Validate())}
	if a.File != nil {
		errs = append(errs, fault.At("file", a.File.Validate()))
	}
	errs.If(a.File == nil && (a.OTLP.Endpoint != "" || !a.Webhook.URL.IsZero()), "file",
		"is required by otlp and webhook, which read the audit log from this file")
	errs.If(a.Webhook.Format == webhook.FormatSlack, "webhook.format", "must be event, because lines of the audit log are sent unchanged")
	return errors.Join(errs...)
}
