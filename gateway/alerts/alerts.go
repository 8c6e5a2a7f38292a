package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// Alerts sends alerts to the receivers of organisations. All fields are required.
type Alerts struct {
	*view.Current
	Logger *slog.Logger
	// Go runs deliveries in the background.
	Go func(f func())
	// Meter creates the instruments.
	Meter metric.Meter
	// SnoozeLinks creates links with which owners snooze resources.
	SnoozeLinks money.SnoozeLinks
	// Approvals and Notices provide the exceptions that are not part of the configuration.
	Approvals *approval.Store
	Notices   ledger.NoticeStore
	// Sent stores the sent alerts of each organisation.
	Sent *store.CappedLog

	mu     sync.Mutex      // guards failed
	failed map[string]bool // ids of undelivered alerts that are in the list already
}

// Thresholds sends alerts about budgets that reach a threshold and about hours with an unusual cost. It logs them, counts them and sends
// them to webhooks. It implements money.Alerts.
type Thresholds struct {
	*Alerts

	due   *ledger.Alerts
	count metric.Int64Counter
}

// NewThresholds returns a Thresholds for ledgers with the given history.
func (t *Alerts) NewThresholds(notices ledger.NoticeStore, history *ledger.History) *Thresholds {
	return &Thresholds{
		Alerts: t, due: &ledger.Alerts{Notices: notices, History: history, Logger: t.Logger},
		count: telemetry.Must(t.Meter.Int64Counter("tollgate.budget.alerts",
			metric.WithDescription("Number of times that a budget reached a threshold, which is a percentage of the budget."))),
	}
}

// CheckThresholds compares the budgets of an organisation with its ledger. It does not wait for deliveries.
func (w *Thresholds) CheckThresholds(ctx context.Context, org string, p *ledger.Plan, s *ledger.State) {
	w.Go(func() {
		if err := w.due.Check(ctx, org, p, s, w.notify); err != nil {
			w.Logger.WarnContext(ctx, "alert not delivered", "org", org, "error", err.Error())
		}
	})
}

func (w *Thresholds) notify(ctx context.Context, a *ledger.Alert) error {
	t := w.Alerts
	if a.Usual != nil {
		return t.notifyUnusual(ctx, a)
	}
	budget, used, limit := ledger.CeilingName(a.Ceiling), ledger.AmountText(a.Ceiling, a.Used), ledger.AmountText(a.Ceiling, a.Limit)
	err := t.deliver(ctx, a.Org, a.ID, "budget.threshold", a.At, budgetAlert{
		Org: a.Org, Scope: a.Scope.String(), Budget: budget, Percent: a.Percent, Used: json.Number(used), Limit: json.Number(limit),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", a.ID, err)
	}
	t.Logger.WarnContext(ctx, "budget has reached a threshold", "org", a.Org, "scope", a.Scope.String(), "budget", budget,
		"percent", a.Percent, "used", used, "limit", limit)
	w.count.Add(ctx, 1, metric.WithAttributes(attribute.String("org", a.Org), attribute.String("budget", budget),
		attribute.Int64("percent", a.Percent)))
	return nil
}

// unusualAlert is the alert about an hour that costs many times its usual cost. Amounts are in USD.
type unusualAlert struct {
	Org   string      `json:"org"`
	Scope string      `json:"scope"`
	Hour  time.Time   `json:"hour"`
	Spent json.Number `json:"spent"` // so far
	Usual json.Number `json:"usual"`
}

func (t *Alerts) notifyUnusual(ctx context.Context, a *ledger.Alert) error {
	const kind = "spend.unusual"
	d := unusualAlert{
		Org: a.Org, Scope: a.Scope.String(), Hour: ledger.Hourly.Start(a.At),
		Spent: json.Number(catalog.Money(a.Used).String()), Usual: json.Number(catalog.Money(*a.Usual).String()),
	}
	if err := t.deliver(ctx, a.Org, a.ID, kind, a.At, d); err != nil {
		return fmt.Errorf("%s: %w", a.ID, err)
	}
	t.Logger.WarnContext(ctx, "hourly cost is far above the usual cost", "event", kind, "org", d.Org, "scope", d.Scope, "hour", d.Hour,
		"spent_usd", string(d.Spent), "usual_usd", string(d.Usual))
	return nil
}

// Cause writes the reason why pods are stopped, or why a resource is idle, to the log and sends it to the receiver of the organisation. The
// arguments budget and idle are the event types for the two cases. Cause does not wait for the delivery; it calls ended with the result of
// the delivery.
func (t *Alerts) Cause(ctx context.Context, c *ledger.Cause, r *ledger.Record, budget, idle string, ended func(error)) {
	now := t.Now()
	var kind, id string
	var data content
	if x := c.Excess; x != nil {
		d := budgetAlert{
			Org: c.Org, Scope: x.Scope.String(), Budget: ledger.CeilingName(x.Ceiling), StopAt: &c.StopAt, Resource: r.ID, Kind: r.Kind,
			Name: r.Metadata.Name,
			Used: json.Number(ledger.AmountText(x.Ceiling, x.Used)), Limit: json.Number(ledger.AmountText(x.Ceiling, x.Limit)),
		}
		t.Logger.WarnContext(ctx, "budget exceeded", "event", budget, "org", c.Org, "scope", d.Scope, "budget", d.Budget, "used", string(d.Used),
			"limit", string(d.Limit), "stop_at", c.StopAt, "resource", r.ID, "name", r.Metadata.Name, "team", r.Owner.Team, "key", r.Owner.Key)
		kind, data = budget, d
		id = strings.Join([]string{kind, c.Org, string(x.Scope.Kind), x.Scope.ID, d.Budget, r.ID, now.UTC().Format(time.RFC3339)}, ":")
	} else {
		d := t.newIdleAlert(c, r)
		t.Logger.WarnContext(ctx, "resource is idle", "event", idle, "org", c.Org, "resource", r.ID, "kind", r.Kind, "name", d.Name,
			"reason", c.Idle.Reason,
			"since", d.Since, "usd_per_month", string(d.PerMonth), "stop_at", c.StopAt, "team", r.Owner.Team, "key", r.Owner.Key)
		kind, data = idle, d
		at := c.FirstSent
		if at.IsZero() {
			at = c.StopAt
		}
		id = strings.Join([]string{kind, c.Org, r.ID, d.Since.Format(time.RFC3339), at.Format(time.RFC3339)}, ":")
	}
	t.Go(func() { ended(t.delivered(ctx, c.Org, id, kind, now, data)) })
}

// sendAsync delivers an event in the background.
func (t *Alerts) sendAsync(ctx context.Context, org, id, kind string, at time.Time, data content) {
	t.Go(func() { _ = t.delivered(ctx, org, id, kind, at, data) })
}

// delivered delivers an event. It logs and returns a failure.
func (t *Alerts) delivered(ctx context.Context, org, id, kind string, at time.Time, data content) error {
	err := t.deliver(context.WithoutCancel(ctx), org, id, kind, at, data)
	if err != nil {
		t.Logger.WarnContext(ctx, "alert not delivered", "org", org, "event", kind, "error", err.Error())
	}
	return err
}

// unmanaged is the alert about a resource created outside the gateway.
type unmanaged struct {
	Org      string         `json:"org"`
	Resource string         `json:"resource"`
	Kind     operation.Kind `json:"kind"`
	Name     string         `json:"name,omitempty"`
	PerHour  json.Number    `json:"per_hour"` // USD
}

// Unmanaged sends alerts about resources that the ledger has found for the first time and that no caller has created. The ledger has
// already logged them.
func (t *Alerts) Unmanaged(ctx context.Context, org string, found []ledger.PlatformResource) {
	const kind = "resource.unowned"
	for _, f := range found {
		t.sendAsync(ctx, org, strings.Join([]string{kind, org, f.ID}, ":"), kind, t.Now(), unmanaged{
			Org: org, Resource: f.ID, Kind: f.Kind, Name: f.Name, PerHour: json.Number(catalog.Money(f.Amounts[ledger.Burn]).String()),
		})
	}
}

// drift is the alert about a resource changed or removed outside the gateway. Amounts are in USD.
type drift struct {
	ownedResource
	Before  json.Number `json:"per_hour_before"`
	PerHour json.Number `json:"per_hour"`
}

// ownedResource describes the resource of an alert.
type ownedResource struct {
	Org      string `json:"org"`
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	Name     string `json:"name,omitempty"`
	Team     string `json:"team,omitempty"`
	Key      string `json:"key,omitempty"`
}

// Drift sends alerts about resources changed or removed outside the gateway. The ledger has logged them. Drift ignores changes in the
// number of workers of an endpoint if active workers are counted.
func (t *Alerts) Drift(ctx context.Context, org string, drifted []ledger.Drift) {
	o := t.Config().Org(org)
	for _, d := range drifted {
		kind := "resource.changed"
		switch {
		case d.Gone:
			kind = "resource.removed"
		case o != nil && o.Endpoints == ledger.WorkersActive && d.Kind == string(operation.KindEndpoint):
			continue
		}
		id := strings.Join([]string{kind, org, d.ID, strconv.FormatInt(d.Version, 10)}, ":")
		t.sendAsync(ctx, org, id, kind, t.Now(), drift{
			ownedResource: ownedResource{org, d.ID, d.Kind, d.Metadata.Name, d.Owner.Team, d.Owner.Key},
			Before:        json.Number(catalog.Money(d.Amounts[ledger.Burn]).String()),
			PerHour:       json.Number(catalog.Money(d.Current[ledger.Burn]).String()),
		})
	}
}

// incompleteList is the alert about a platform list that omits most of the resources.
type incompleteList struct {
	Org     string `json:"org"`
	Listed  int    `json:"listed"`
	Missing int    `json:"missing"`
}

// IncompleteList sends an alert, at most once per hour, that a list from the platform omits most of the known resources.
func (t *Alerts) IncompleteList(ctx context.Context, org string, r *ledger.Report) {
	const kind = "platform.list_short"
	now := t.Now()
	id := strings.Join([]string{kind, org, ledger.Hourly.Start(now).Format(time.RFC3339)}, ":")
	t.sendAsync(ctx, org, id, kind, now, incompleteList{Org: org, Listed: r.Resources, Missing: r.Missing})
}

// budgetAlert is the alert about a budget. Amounts are in USD, or counts.
type budgetAlert struct {
	Org     string      `json:"org"`
	Scope   string      `json:"scope"`
	Budget  string      `json:"budget"`
	Percent int64       `json:"percent,omitempty"` // the threshold reached
	Used    json.Number `json:"used"`
	Limit   json.Number `json:"limit"`
	// StopAt is the time of the first stop of a pod or deletion of a sandbox. Resource, Kind and Name describe the one that was stopped or
	// deleted.
	StopAt   *time.Time `json:"stop_at,omitempty"`
	Resource string     `json:"resource,omitempty"`
	Kind     string     `json:"kind,omitempty"`
	Name     string     `json:"name,omitempty"`
}

// deliver sends an event to the receiver of an organisation, if it has one, and stores it for operators.
func (t *Alerts) deliver(ctx context.Context, org, id, kind string, at time.Time, data content) error {
	o := t.Config().Org(org)
	if o == nil {
		return nil
	}
	err := t.send(ctx, o, id, kind, at, data)
	t.record(ctx, org, Alert{ID: id, Kind: kind, At: at.UTC(), Delivered: !o.Alerts.Webhook.URL.IsZero() && err == nil}, data, err)
	return err
}

// send sends an event to the receiver of an organisation, if it has one.
func (t *Alerts) send(ctx context.Context, o *settings.Org, id, kind string, at time.Time, data content) error {
	if o.Alerts.Webhook.URL.IsZero() {
		return nil
	}
	sender, err := webhook.New(&o.Alerts.Webhook, t.Now)
	if err != nil {
		return err
	}
	return sender.Send(ctx, id, kind, at, message(t.Config(), o.ID, kind, data))
}

// idleAlert is the alert about an idle resource.
type idleAlert struct {
	ownedResource
	Reason   ledger.Reason `json:"reason"`
	Since    time.Time     `json:"since"`
	PerMonth json.Number   `json:"per_month"` // USD
	// StopAt is the time of the planned stop of the pod.
	StopAt *time.Time `json:"stop_at,omitempty"`
	// SnoozeURL is the page for snoozing the resource.
	SnoozeURL string `json:"snooze_url,omitempty"`
}

func (t *Alerts) newIdleAlert(c *ledger.Cause, r *ledger.Record) idleAlert {
	a := idleAlert{
		ownedResource: ownedResource{c.Org, r.ID, c.Idle.Kind, c.Idle.Name, r.Owner.Team, r.Owner.Key},
		Reason:        c.Idle.Reason, Since: c.Idle.Since.UTC(), PerMonth: json.Number(catalog.Monthly(catalog.Money(c.Idle.Burn)).String()),
		SnoozeURL: t.SnoozeLinks.Link(c.Org, r.ID),
	}
	if !c.StopAt.IsZero() {
		a.StopAt = &c.StopAt
	}
	return a
}

// lostLedger is the alert about a ledger that the store has lost.
type lostLedger struct {
	Org string `json:"org"`
	*money.Loss
}

// LedgerLost sends an alert about a ledger that the store has lost.
func (t *Alerts) LedgerLost(ctx context.Context, org string, l *money.Loss) {
	const kind = "ledger.lost"
	t.sendAsync(ctx, org, strings.Join([]string{kind, org, strconv.FormatInt(l.At.UnixMilli(), 10)}, ":"), kind, l.At, lostLedger{org, l})
}
