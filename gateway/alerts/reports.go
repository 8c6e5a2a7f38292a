package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
)

const (
	// reportLook is the interval between checks for due reports.
	reportLook = time.Minute
	// reportLate is the longest delay after which a report is still sent, if all gateways were down.
	reportLate = 3 * 24 * time.Hour
	// reportTime limits the creation and delivery of one report.
	reportTime = 5 * time.Minute
)

// WatchReports sends the weekly reports that are due, at the start and every minute. Only one of the gateways that share the store
// sends each report.
func (t *Alerts) WatchReports(ctx context.Context, weekly MakeReport) error {
	return tasks.Every(reportLook, func(ctx context.Context) { t.Reports(ctx, weekly) })(ctx)
}

// MakeReport creates the report of the seven days before a time, like [Reports.Weekly].
type MakeReport func(ctx context.Context, org, team string, to time.Time) (*Weekly, error)

// Reports sends the due reports that no gateway has sent yet.
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

// report creates and sends a report unless another gateway has done so or is doing so. The report is claimed before it is delivered, so
// that it is sent at most once. If the gateway is killed between the claim and the delivery, the report is not sent. A report that could
// not be created or delivered is retried.
func (t *Alerts) report(ctx context.Context, o *settings.Org, team string, due time.Time, weekly MakeReport) {
	const kind = "report.weekly"
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	id := strings.Join([]string{kind, o.ID, team, due.Format(time.DateOnly)}, ":")
	mine, err := t.Sent.Claim(ctx, o.ID, id)
	if err != nil || !mine {
		return // the store is down, which is reported elsewhere, or another gateway has claimed the report
	}
	if err = t.make(ctx, o, team, id, due, weekly); err == nil {
		t.Logger.InfoContext(ctx, "weekly report sent", "org", o.ID, "team", team, "due", due)
		return
	}
	if _, none := errors.AsType[adminapi.BadRequestError](err); none {
		return // without budgets, the report would be empty
	}
	t.Logger.WarnContext(ctx, "weekly report failed", "org", o.ID, "team", team, "due", due, "error", err.Error())
	if err := t.Sent.Drop(context.WithoutCancel(ctx), o.ID, id); err != nil {
		t.Logger.WarnContext(ctx, "weekly report failed too often, giving up", "org", o.ID, "team", team, "due", due, "error", err.Error())
	}
}

// make creates a report, writes it to the report directory, and delivers it.
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

// write writes a file atomically.
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
