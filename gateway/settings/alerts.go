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
	"github.com/tollgate-dev/tollgate/translate"
)

// Alerts sets the receivers of alerts about budgets that are nearly used up, and of other notices, and their times.
type Alerts struct {
	Thresholds []int64        `yaml:"thresholds" doc:"shares of a budget that are told of when they are reached, each once in a period of the budget, a day where it has none; absent is 50, 80 and 100" unit:"percent"`
	Unusual    ledger.Unusual `yaml:"unusual" doc:"hours that cost many times their usual"`
	Exceptions time.Duration  `yaml:"exceptions" doc:"how long before its end an exception to a policy is told of, once; 0 is 72h"`
	Webhook    webhook.Config `yaml:"webhook" doc:"receiver of alerts, beside the log and the metrics; without url there is none"`

	Report Report `yaml:"report" doc:"a report each week on the organisation and on each team, to the webhook and the directory spend.reports"`

	SnoozeSecret strictyaml.Secret `yaml:"snooze_secret" doc:"key that links in notices of idle resources are signed with (HMAC-SHA256), each of which keeps its resource for 24h; at least 24 bytes, and no one else's; needs public_url. Without it there are no links"`
}

// minSnoozeSecret is the least length of a key of links, in bytes.
const minSnoozeSecret = 24

// Validate reports every fault, each with its path below the section.
func (a *Alerts) Validate() error {
	errs := fault.Found{fault.At("webhook", a.Webhook.Validate()), fault.At("unusual", a.Unusual.Validate())}
	errs.If(a.Report.Hour < 0 || a.Report.Hour > 23, "report.hour", "must be from 0 to 23")
	errs.If(a.Exceptions < 0, "exceptions", "must not be negative")
	errs.If(a.SnoozeSecret.Resolved() && len(a.SnoozeSecret.Reveal()) < minSnoozeSecret, "snooze_secret", "must have at least %d bytes", minSnoozeSecret)
	for i, percent := range a.Thresholds {
		errs.If(percent < 1 || percent > 100, fmt.Sprintf("thresholds[%d]", i), "must be from 1 to 100")
	}
	return errors.Join(errs...)
}

// Report says when weekly reports are made. The zero Report is never.
type Report struct {
	Weekday translate.Weekday `yaml:"weekday" doc:"day on which the report of the seven days before it is made; empty makes none"`
	Hour    int               `yaml:"hour" doc:"hour of that day, from 0 to 23 in UTC"`
}

// Due returns when the latest report became due, zero for none.
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

// ThresholdsOrDefault are those of a budget that are told of, in percent.
func (a *Alerts) ThresholdsOrDefault() []int64 {
	if a.Thresholds == nil {
		return []int64{50, 80, 100}
	}
	return a.Thresholds
}
