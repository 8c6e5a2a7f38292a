package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/gateway/tenants"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// newAlerts tells of budgets that reach a threshold and of unusual hours: by a line of
// the log, a count and a webhook.
func (g *Gateway) newAlerts(notices spend.Notices, history *spend.History) *spend.Alerts {
	count := telemetry.Must(g.meter().Int64Counter("tollgate.budget.alerts", metric.WithDescription("Budgets that reached a threshold, in percent.")))
	return &spend.Alerts{
		Notices: notices, Go: g.late.Go, Logger: g.deps.Logger,
		Plan: g.plan, History: history,
		Tell: func(ctx context.Context, a spend.Alert) error {
			if a.Usual != nil {
				return g.tellUnusual(ctx, &a)
			}
			err := g.deliver(ctx, a.Org, a.ID, "budget.threshold", a.At, budgetAlert{
				Org: a.Org, Scope: a.Scope.String(), Budget: spend.CeilingName(a.Ceiling), Percent: a.Percent,
				Used: json.Number(spend.AmountText(a.Ceiling, a.Used)), Limit: json.Number(spend.AmountText(a.Ceiling, a.Limit)),
			})
			if err != nil {
				return fmt.Errorf("%s: %w", a.ID, err)
			}
			budget := spend.CeilingName(a.Ceiling)
			g.deps.Logger.WarnContext(ctx, "a budget has reached a threshold", "org", a.Org, "scope", a.Scope.String(), "budget", budget,
				"percent", a.Percent, "used", spend.AmountText(a.Ceiling, a.Used), "limit", spend.AmountText(a.Ceiling, a.Limit))
			count.Add(ctx, 1, metric.WithAttributes(attribute.String("org", a.Org), attribute.String("budget", budget), attribute.Int64("percent", a.Percent)))
			return nil
		},
	}
}

// unusualAlert is what receivers are told about an hour that costs many times its
// usual; amounts are USD.
type unusualAlert struct {
	Org   string      `json:"org"`
	Scope string      `json:"scope"`
	Hour  time.Time   `json:"hour"`
	Spent json.Number `json:"spent"` // so far
	Usual json.Number `json:"usual"`
}

func (g *Gateway) tellUnusual(ctx context.Context, a *spend.Alert) error {
	const kind = "spend.unusual"
	d := unusualAlert{
		Org: a.Org, Scope: a.Scope.String(), Hour: spend.Hourly.Start(a.At),
		Spent: json.Number(catalog.Money(a.Used).String()), Usual: json.Number(catalog.Money(*a.Usual).String()),
	}
	if err := g.deliver(ctx, a.Org, a.ID, kind, a.At, d); err != nil {
		return fmt.Errorf("%s: %w", a.ID, err)
	}
	g.deps.Logger.WarnContext(ctx, "an hour costs many times its usual", "event", kind, "org", d.Org, "scope", d.Scope, "hour", d.Hour, "spent_usd", string(d.Spent), "usual_usd", string(d.Usual))
	return nil
}

// plan returns the budgets of an organisation, nil for none.
func (g *Gateway) plan(org string) *spend.Plan {
	if o := g.org(org); o != nil {
		return tenants.Plan(o)
	}
	return nil
}

// org returns the configuration of an organisation, nil for none.
func (g *Gateway) org(id string) *settings.Org { return g.current.Load().config.Org(id) }

// newEnforcer stops pods of budgets that are passed and idle ones, and tells of it
// like of a threshold. What could not be delivered is in the log.
func (g *Gateway) newEnforcer(notices spend.Notices, gap time.Duration) *spend.Enforcer {
	return &spend.Enforcer{
		Notices: notices, Plan: g.plan, Gap: gap,
		Announce: func(ctx context.Context, c spend.Cause, r spend.Record) {
			g.tellCause(ctx, c, r, "budget.over", "resource.idle")
		},
		Stopped: func(ctx context.Context, c spend.Cause, r spend.Record) {
			g.tellCause(ctx, c, r, "budget.stopped", "resource.stopped")
			g.didStop(&c, &r)
		},
		Stop: g.stopPod,
	}
}

// stopPod stops a pod of a budget that is passed, or an idle one. It is audited like
// the callers' own.
func (g *Gateway) stopPod(ctx context.Context, org, id string) (spend.Amounts, error) {
	prices, err := g.catalog.Snapshot(ctx, org)
	if err != nil {
		prices = nil
	}
	if g.audit.Log == nil {
		return g.current.Load().reader.StopPod(ctx, org, id, prices)
	}
	seq, err := g.audit.Log.Intent(audit.Record{
		Org: org, Who: "gateway", Operation: "podAction", Kind: string(operation.KindPod), Verb: string(operation.VerbStop), Resource: id, Lowers: true,
	})
	if err != nil {
		return spend.Amounts{}, err
	}
	amounts, err := g.current.Load().reader.StopPod(ctx, org, id, prices)
	result := audit.Record{Resource: id, Carried: "answered"}
	if err != nil {
		result.Carried = "sent"
	}
	return amounts, errors.Join(err, g.audit.Log.Result(seq, result))
}

// tellCause tells by the log and the webhook why pods are stopped, as an event of a
// kind for budgets or one for idle resources, without waiting for the delivery.
func (g *Gateway) tellCause(ctx context.Context, c spend.Cause, r spend.Record, budget, idle string) {
	now := g.deps.Now()
	var kind, id string
	var data any
	if x := c.Excess; x != nil {
		d := budgetAlert{
			Org: c.Org, Scope: x.Scope.String(), Budget: spend.CeilingName(x.Ceiling), StopAt: &c.StopAt, Resource: r.ID, Name: r.About.Name,
			Used: json.Number(spend.AmountText(x.Ceiling, x.Used)), Limit: json.Number(spend.AmountText(x.Ceiling, x.Limit)),
		}
		g.deps.Logger.WarnContext(ctx, "a budget is passed", "event", budget, "org", c.Org, "scope", d.Scope, "budget", d.Budget, "used", string(d.Used),
			"limit", string(d.Limit), "stop_at", c.StopAt, "resource", r.ID, "name", r.About.Name, "team", r.Owner.Team, "key", r.Owner.Key)
		kind, data = budget, d
		id = strings.Join([]string{kind, c.Org, string(x.Scope.Kind), x.Scope.ID, d.Budget, r.ID, now.UTC().Format(time.RFC3339)}, ":")
	} else {
		d := g.newIdleAlert(&c, &r)
		g.deps.Logger.WarnContext(ctx, "a resource is idle", "event", idle, "org", c.Org, "resource", r.ID, "kind", r.Kind, "name", d.Name, "reason", c.Idle.Reason,
			"since", d.Since, "usd_per_month", string(d.PerMonth), "stop_at", c.StopAt, "team", r.Owner.Team, "key", r.Owner.Key)
		kind, data = idle, d
		id = strings.Join([]string{kind, c.Org, r.ID, d.Since.Format(time.RFC3339), c.StopAt.Format(time.RFC3339)}, ":")
	}
	g.tell(ctx, c.Org, id, kind, now, data)
}

// tell delivers an event without waiting for that.
func (g *Gateway) tell(ctx context.Context, org, id, kind string, at time.Time, data any) {
	g.late.Go(func() {
		if err := g.deliver(context.WithoutCancel(ctx), org, id, kind, at, data); err != nil {
			g.deps.Logger.WarnContext(ctx, "an alert was not delivered", "org", org, "event", kind, "error", err.Error())
		}
	})
}

// stranger is what receivers are told about a resource that was made without the
// gateway.
type stranger struct {
	Org      string         `json:"org"`
	Resource string         `json:"resource"`
	Kind     operation.Kind `json:"kind"`
	Name     string         `json:"name,omitempty"`
	PerHour  json.Number    `json:"per_hour"` // USD
}

// tellStrangers tells of resources that the ledger has found for the first time and
// that none of the callers made. The log has them already.
func (g *Gateway) tellStrangers(ctx context.Context, org string, found []spend.Found) {
	const kind = "resource.unowned"
	for _, f := range found {
		g.tell(ctx, org, strings.Join([]string{kind, org, f.ID}, ":"), kind, g.deps.Now(), stranger{
			Org: org, Resource: f.ID, Kind: f.Kind, Name: f.Name, PerHour: json.Number(catalog.Money(f.Amounts[spend.Burn]).String()),
		})
	}
}

// drift is what receivers are told about a resource that was changed or removed
// without the gateway; amounts are USD.
type drift struct {
	ownedResource
	Before  json.Number `json:"per_hour_before"`
	PerHour json.Number `json:"per_hour"`
}

// ownedResource is what receivers are told about the resource of an alert.
type ownedResource struct {
	Org      string `json:"org"`
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	Name     string `json:"name,omitempty"`
	Team     string `json:"team,omitempty"`
	Key      string `json:"key,omitempty"`
}

// tellDrift tells of resources that were changed or removed without the gateway. The
// log has them already. That workers of endpoints come and go, where those active are
// counted, is no news.
func (g *Gateway) tellDrift(ctx context.Context, org string, drifted []spend.Drift) {
	o := g.org(org)
	for _, d := range drifted {
		kind := "resource.changed"
		switch {
		case d.Gone:
			kind = "resource.removed"
		case o != nil && o.Endpoints == spend.WorkersActive && d.Kind == string(operation.KindEndpoint):
			continue
		}
		id := strings.Join([]string{kind, org, d.ID, strconv.FormatInt(d.Version, 10)}, ":")
		g.tell(ctx, org, id, kind, g.deps.Now(), drift{
			ownedResource: ownedResource{org, d.ID, d.Kind, d.About.Name, d.Owner.Team, d.Owner.Key},
			Before:        json.Number(catalog.Money(d.Amounts[spend.Burn]).String()), PerHour: json.Number(catalog.Money(d.Now[spend.Burn]).String()),
		})
	}
}

// shortList is what receivers are told about a list of the platform that lacks most of
// what there is.
type shortList struct {
	Org     string `json:"org"`
	Listed  int    `json:"listed"`
	Missing int    `json:"missing"`
}

// tellShort tells of a list that lacks most of what there is, under one id an hour. The
// log has it already.
func (g *Gateway) tellShort(ctx context.Context, org string, r *spend.Report) {
	const kind = "platform.list_short"
	now := g.deps.Now()
	id := strings.Join([]string{kind, org, spend.Hourly.Start(now).Format(time.RFC3339)}, ":")
	g.tell(ctx, org, id, kind, now, shortList{Org: org, Listed: r.Resources, Missing: r.Missing})
}

// budgetAlert is what receivers are told about a budget; amounts are USD, or counts.
type budgetAlert struct {
	Org     string      `json:"org"`
	Scope   string      `json:"scope"`
	Budget  string      `json:"budget"`
	Percent int64       `json:"percent,omitempty"` // the threshold
	Used    json.Number `json:"used"`
	Limit   json.Number `json:"limit"`
	// StopAt is when pods begin to be stopped, Resource and Name are the one that was.
	StopAt   *time.Time `json:"stop_at,omitempty"`
	Resource string     `json:"resource,omitempty"`
	Name     string     `json:"name,omitempty"`
}

// deliver sends an event to the receiver of an organisation, if it has one.
func (g *Gateway) deliver(ctx context.Context, org, id, kind string, at time.Time, data any) error {
	o := g.org(org)
	if o == nil || o.Alerts.Webhook.URL == "" {
		return nil
	}
	sender, err := webhook.New(&o.Alerts.Webhook, g.deps.Now)
	if err != nil {
		return err
	}
	return sender.Send(ctx, id, kind, at, data)
}
