package settings

import (
	"errors"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Alerts configures which alerts are sent, when, and to which receivers.
type Alerts struct {
	Thresholds []int64        `yaml:"thresholds" doc:"percentages of a budget that trigger an alert, once per budget period, or once a day for a budget without a period. If absent, alerts are sent at 50, 80 and 100" unit:"percent"`
	Unusual    ledger.Unusual `yaml:"unusual" doc:"alerts for hours that cost many times the usual amount"`
	Exceptions time.Duration  `yaml:"exceptions" doc:"time before the end of a policy exception at which a single alert is sent; 0 means 72h"`

	Webhook webhook.Config `yaml:"webhook" doc:"webhook for alerts, in addition to log and metrics. If url is not set, no webhook is called"`

	Report Report `yaml:"report" doc:"weekly report on the organisation and each team, sent to webhook and written to spend.reports"`

	SnoozeSecret strictyaml.Secret `yaml:"snooze_secret" doc:"key that signs the links in idle notices with HMAC-SHA256. The key must have at least 24 bytes and must not be used elsewhere. Each link opens a page where the resource can be snoozed for 24h. Requires public_url. If absent, notices contain no links"`
}

// minSnoozeSecret is the minimum length of snooze_secret in bytes.
const minSnoozeSecret = 24

// Validate returns all faults, each with its path relative to the section.
func (a *Alerts) Validate() error {
	errs := fault.Found{fault.At("webhook", a.Webhook.Validate()), fault.At("unusual", a.Unusual.Validate())}
	fault.Between(&errs, "report.hour", a.Report.Hour, 0, 23)
	errs.If(a.Exceptions < 0, "exceptions", "must not be negative")
	errs.If(a.SnoozeSecret.Resolved() && len(a.SnoozeSecret.Reveal()) < minSnoozeSecret, "snooze_secret",
		"must have at least %d bytes", minSnoozeSecret)
	for i, percent := range a.Thresholds {
		fault.Between(&errs, fault.Index("thresholds", i), percent, 1, 100)
	}
	return errors.Join(errs...)
}

// Report sets the time of weekly reports. The zero Report disables them.
type Report struct {
	Weekday Weekday `yaml:"weekday" doc:"weekday of the report on the previous seven days. If empty, no reports are created"`
	Hour    int     `yaml:"hour" doc:"hour of the report, from 0 to 23 in UTC"`
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
