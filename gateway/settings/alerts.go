package settings

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Alerts configures which alerts are sent, when, and to which receivers.
type Alerts struct {
	Thresholds []int64        `yaml:"thresholds" doc:"percentages of a budget that trigger an alert, each once per budget period (once a day for a budget without a period); if absent, 50, 80 and 100" unit:"percent"`
	Unusual    ledger.Unusual `yaml:"unusual" doc:"alerts about hours that cost many times the usual amount"`
	Exceptions time.Duration  `yaml:"exceptions" doc:"time before the end of a policy exception at which an alert is sent, once; 0 means 72h"`
	Webhook    webhook.Config `yaml:"webhook" doc:"webhook that receives alerts, in addition to the log and metrics; without url, none"`

	Report Report `yaml:"report" doc:"weekly report on the organisation and on each team, sent to the webhook and written to the directory spend.reports"`

	SnoozeSecret strictyaml.Secret `yaml:"snooze_secret" doc:"key that signs the links in idle notices with HMAC-SHA256, at least 24 bytes and not used elsewhere; each leads to a page that can keep the resource for 24h. Requires public_url. Without a key, notices contain no links"`
}

// minSnoozeSecret is the minimum length of snooze_secret in bytes.
const minSnoozeSecret = 24

// Validate returns all faults, each with its path relative to the section.
func (a *Alerts) Validate() error {
	errs := fault.Found{fault.At("webhook", a.Webhook.Validate()), fault.At("unusual", a.Unusual.Validate())}
	errs.If(a.Report.Hour < 0 || a.Report.Hour > 23, "report.hour", "must be from 0 to 23")
	errs.If(a.Exceptions < 0, "exceptions", "must not be negative")
	errs.If(a.SnoozeSecret.Resolved() && len(a.SnoozeSecret.Reveal()) < minSnoozeSecret, "snooze_secret",
		"must have at least %d bytes", minSnoozeSecret)
	for i, percent := range a.Thresholds {
		errs.If(percent < 1 || percent > 100, fmt.Sprintf("thresholds[%d]", i), "must be from 1 to 100")
	}
	return errors.Join(errs...)
}

// Report sets the time of weekly reports. The zero Report disables them.
type Report struct {
	Weekday Weekday `yaml:"weekday" doc:"weekday of the report about the previous seven days; if empty, no reports are created"`
	Hour    int     `yaml:"hour" doc:"hour of the report, 0 to 23 in UTC"`
}

// Due returns the time at which the latest report became due, or the zero time if reports are disabled.
func (r Report) Due(now time.Time) time.Time {
	day := slices.Index(r.Weekday.Values(), string(r.Weekday))
	if day < 0 {
		return time.Time{}
	}
	due := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, day-int(now.UTC().Weekday())).Add(time.Duration(r.Hour) * time.Hour)
	if due.After(now) {
		due = due.AddDate(0, 0, -7)
	}
	return due
}

// ThresholdsOrDefault returns the percentages of a budget at which alerts are sent.
func (a *Alerts) ThresholdsOrDefault() []int64 {
	if a.Thresholds == nil {
		return []int64{50, 80, 100}
	}
	return a.Thresholds
}
