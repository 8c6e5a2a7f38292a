package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

const (
	// reportLook is how often it is looked whether a report is due.
	reportLook = time.Minute
	// reportLate is how late a report is made at most, after all gateways were down.
	reportLate = 3 * 24 * time.Hour
	// reportTime bounds the making and the delivery of one report.
	reportTime = 5 * time.Minute
)

// WatchReports sends the weekly reports that are due, at the start and each minute. Of all gateways that share the store one sends each.
func (t *Alerts) WatchReports(ctx context.Context, weekly MakeReport) error {
	tick := time.NewTicker(reportLook)
	defer tick.Stop()
	for {
		t.Reports(ctx, weekly)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// MakeReport makes the report of the seven days before a time, as [Reports.Weekly] does.
type MakeReport func(ctx context.Context, org, team string, to time.Time) (*Weekly, error)

// Reports sends the reports that are due and that no gateway has sent.
func (t *Alerts) Reports(ctx context.Context, weekly MakeReport) {
	cfg := t.Config()
	for i := range cfg.Orgs {
		o := &cfg.Orgs[i]
		due := o.Alerts.Report.Due(t.Now())
		if due.IsZero() || t.Now().Sub(due) > reportLate {
			continue
		}
		t.report(ctx, o, "", due, weekly)
		for _, team := range o.Teams {
			t.report(ctx, o, team.ID, due, weekly)
		}
	}
}

// report makes a report, unless a gateway has made it or is at it. The claim comes before the delivery, so that no report is sent twice: that of
// a gateway that is killed in between is not sent. One that could not be made or delivered is tried again.
func (t *Alerts) report(ctx context.Context, o *settings.Org, team string, due time.Time, weekly MakeReport) {
	const kind = "report.weekly"
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	id := strings.Join([]string{kind, o.ID, team, due.Format(time.DateOnly)}, ":")
	mine, err := t.Sent.Claim(ctx, o.ID, id)
	if err != nil || !mine {
		return // the store is away, which others tell of, or another gateway has it
	}
	if err = t.make(ctx, o, team, id, due, weekly); err == nil {
		t.Logger.InfoContext(ctx, "a weekly report was made", "org", o.ID, "team", team, "due", due)
		return
	}
	if _, none := errors.AsType[row.BadRequestError](err); none {
		return // the organisation has no budgets: there is nothing to report
	}
	t.Logger.WarnContext(ctx, "a weekly report was not made", "org", o.ID, "team", team, "due", due, "error", err.Error())
	if err := t.Sent.Drop(context.WithoutCancel(ctx), o.ID, id); err != nil {
		t.Logger.WarnContext(ctx, "a weekly report is not tried again", "org", o.ID, "team", team, "due", due, "error", err.Error())
	}
}

// make makes a report, writes it into the directory of reports, and delivers it.
func (t *Alerts) make(ctx context.Context, o *settings.Org, team, id string, due time.Time, weekly MakeReport) error {
	w, err := weekly(ctx, o.ID, team, due.Truncate(24*time.Hour))
	if err != nil {
		return err
	}
	if dir := t.Config().Spend.Reports; dir != "" {
		if err := write(dir, strings.ReplaceAll(strings.TrimPrefix(id, "report.weekly:"), ":", "_")+".json", w); err != nil {
			return err
		}
	}
	return t.deliver(ctx, o.ID, id, "report.weekly", due, w)
}

// write writes a file that is whole or not there.
func write(dir, name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".report-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Chmod(0o640), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
