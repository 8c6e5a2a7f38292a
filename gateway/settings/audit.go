package settings

import (
	"errors"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/logfile"
)

// Audit configures the audit log.
type Audit struct {
	File    *logfile.File  `yaml:"file" doc:"audit log file. The gateway writes a JSON line before and after each change, and refuses changes that it cannot log. Each gateway needs its own file"`
	Sync    bool           `yaml:"sync" doc:"flush each audit line to disk before the change"`
	OTLP    Receiver       `yaml:"otlp" doc:"OTLP receiver of the audit log. Each line is delivered at least once, as a log record. The delivery position is stored in path.otlp"`
	Webhook webhook.Config `yaml:"webhook" doc:"webhook that receives each audit line as an event, at least once. The delivery position is stored in path.webhook"`
}

// Validate returns all faults of the section, joined. Their paths are relative to the section.
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
