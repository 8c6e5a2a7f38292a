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

// Alerts configures the alerts of an organisation: their conditions, times and receivers.
type Alerts struct {
	Thresholds []int64        `yaml:"thresholds" doc:"percentages of a budget that trigger an alert, once per budget period, or once a day without a period; default 50, 80 and 100; [] disables these alerts" unit:"percent"`
	Unusual    ledger.Unusual `yaml:"unusual" doc:"alerts for unusually expensive hours"`
	Exceptions time.Duration  `yaml:"exceptions" doc:"time from the only alert about a policy exception to its end; default 72h"`

	Webhook webhook.Config `yaml:"webhook" doc:"webhook for alerts, in addition to log and metrics"`

	Report Report `yaml:"report" doc:"weekly report on the organisation and each team, sent to webhook and written to spend.reports"`

	SnoozeSecret strictyaml.Secret `yaml:"snooze_secret" doc:"key of at least 24 bytes, used only here, that signs the links in idle notices with HMAC-SHA256. Each link opens a page to snooze the resource for 24h. Requires public_url. If absent, notices contain no links"`
}

// minSnoozeSecret is the minimum length of snooze_secret in bytes.
const minSnoozeSecret = 24

// Validate returns all faults of the section, joined. Their paths are relative to the section.
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
	Weekday Weekday `yaml:"weekday" doc:"weekday of the report on the previous seven days; empty disables reports"`
	Hour    int     `yaml:"hour" doc:"hour of the report, from 0 to 23 in UTC"`
}

// Due returns when the latest report was due, which is never later than now. It returns the zero time if reports are disabled.
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

// ThresholdsOrDefault returns the percentages of a budget at which alerts are sent: the configured ones, or the defaults if none are
// configured.
func (a *Alerts) ThresholdsOrDefault() []int64 {
	if a.Thresholds == nil {
		return []int64{50, 80, 100}
	}
	return a.Thresholds
}
