package ledger

import (
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/config/fault"
)

// Config configures ledgers.
type Config struct {
	Reconcile  time.Duration `yaml:"reconcile" doc:"interval of reconciliations with the platform"`
	Unresolved time.Duration `yaml:"unresolved" doc:"time to search for the resource of an unanswered call before releasing its reservation"`
	Bills      time.Duration `yaml:"bills" doc:"time from the end of an hour until the platform's bill for the hour is complete. The gateway then corrects the counted cost; 0 disables corrections"`
	Reports    string        `yaml:"reports" doc:"directory for weekly reports as JSON files; default none. See orgs[].alerts.report"`
	History    Retention     `yaml:"history" doc:"retention of cost records"`
}

// Retention is the retention time of roll-ups, in days.
type Retention struct {
	Hourly int `yaml:"hourly" doc:"retention of hourly costs" unit:"days"`
	Daily  int `yaml:"daily" doc:"retention of daily costs" unit:"days"`
}

// Of returns the retention of roll-ups of a unit.
func (r Retention) Of(u Unit) time.Duration {
	if u == Hourly {
		return time.Duration(r.Hourly) * Daily.Length()
	}
	return time.Duration(r.Daily) * Daily.Length()
}

// End returns when the roll-up that began at start expires.
func (r Retention) End(u Unit, start time.Time) time.Time { return start.Add(u.Length() + r.Of(u)) }

// maxDays is the longest retention, in days.
const maxDays = 3660

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{Reconcile: time.Minute, Unresolved: 10 * time.Minute, Bills: 2 * time.Hour, History: Retention{Hourly: 35, Daily: 400}}
}

// Validate checks c and joins the errors it finds, each with its path.
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
