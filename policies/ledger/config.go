package ledger

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config is how ledgers are kept.
type Config struct {
	Reconcile  time.Duration `yaml:"reconcile" doc:"time between two comparisons of the ledger with the platform's lists"`
	Unresolved time.Duration `yaml:"unresolved" doc:"how long the resource of a call without an answer is looked for before its reservation is released"`
	Bills      time.Duration `yaml:"bills" doc:"how long after the end of an hour the platform's bill of it is complete: the counted amount is then corrected to the billed one; 0 corrects nothing"`
	Reports    string        `yaml:"reports" doc:"directory that weekly reports are written to, a JSON file for each; empty writes none. See orgs[].alerts.report"`
	History    Retention     `yaml:"history" doc:"how long it is kept what each resource has cost"`
}

// Retention is how long roll-ups are kept, in days.
type Retention struct {
	Hourly int `yaml:"hourly" doc:"how long what each hour cost is kept" unit:"days"`
	Daily  int `yaml:"daily" doc:"how long what each day cost is kept" unit:"days"`
}

// Of returns how long roll-ups of a unit are kept.
func (r Retention) Of(u Unit) time.Duration {
	if u == Hourly {
		return time.Duration(r.Hourly) * Daily.Length()
	}
	return time.Duration(r.Daily) * Daily.Length()
}

// End returns when the roll-up of a unit that began at a time is dropped.
func (r Retention) End(u Unit, start time.Time) time.Time { return start.Add(u.Length() + r.Of(u)) }

// maxDays bounds a retention.
const maxDays = 3660

// DefaultConfig is the configuration used where nothing is said.
func DefaultConfig() Config {
	return Config{Reconcile: time.Minute, Unresolved: 10 * time.Minute, Bills: 2 * time.Hour, History: Retention{Hourly: 35, Daily: 400}}
}

// Validate reports every fault, each with its path below the section.
func (c Config) Validate() error {
	var errs fault.Found
	errs.If(c.Reconcile < time.Second, "reconcile", "must be at least %s, got %s", time.Second, c.Reconcile)
	errs.If(c.Unresolved < time.Minute, "unresolved", "must be at least %s, got %s", time.Minute, c.Unresolved)
	errs.If(c.Bills != 0 && c.Bills < time.Hour, "bills", "must be 0 or at least %s, got %s", time.Hour, c.Bills)
	for _, d := range []struct {
		name         string
		value, least int
	}{{"history.hourly", c.History.Hourly, 1}, {"history.daily", c.History.Daily, 31}} {
		errs.If(d.value < d.least || d.value > maxDays, d.name, "must be between %d and %d days, got %d", d.least, maxDays, d.value)
	}
	return errors.Join(errs...)
}
