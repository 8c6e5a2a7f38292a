package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Alerts says who is told that a budget is nearly used up.
type Alerts struct {
	Thresholds []int64        `yaml:"thresholds" doc:"shares of a budget that are told of when they are reached, each once in a period of the budget, a day where it has none; absent is 50, 80 and 100" unit:"percent"`
	Webhook    webhook.Config `yaml:"webhook" doc:"receiver of alerts, beside the log and the metrics; without url there is none"`
}

// Validate reports every fault, each with its path below the section.
func (a *Alerts) Validate() error {
	errs := []error{fault.At("webhook", a.Webhook.Validate())}
	for i, percent := range a.Thresholds {
		if percent < 1 || percent > 100 {
			errs = append(errs, fault.Errorf(fmt.Sprintf("thresholds[%d]", i), "must be from 1 to 100"))
		}
	}
	return errors.Join(errs...)
}

func (a *Alerts) thresholds() []int64 {
	if a.Thresholds == nil {
		return []int64{50, 80, 100}
	}
	return a.Thresholds
}

// newAlerts tells of budgets that reach a threshold: by a line of the log, a count
// and a webhook.
func (g *Gateway) newAlerts(notices spend.Notices) (*spend.Alerts, error) {
	count, err := g.deps.Providers.Meter().Meter("github.com/tollgate-dev/tollgate/gateway").Int64Counter("tollgate.budget.alerts",
		metric.WithDescription("Budgets that reached a threshold, in percent."))
	if err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	org := func(id string) *Org {
		orgs := g.current.Load().config.Orgs
		if i := slices.IndexFunc(orgs, func(o Org) bool { return o.ID == id }); i >= 0 {
			return &orgs[i]
		}
		return nil
	}
	return &spend.Alerts{
		Notices: notices, Go: g.late.Go, Logger: g.deps.Logger,
		Plan: func(id string) *spend.Plan {
			if o := org(id); o != nil {
				return o.budgets()
			}
			return nil
		},
		Tell: func(ctx context.Context, a spend.Alert) error {
			if o := org(a.Org); o != nil && o.Alerts.Webhook.URL != "" {
				if err := g.deliver(ctx, &o.Alerts.Webhook, &a); err != nil {
					return fmt.Errorf("%s: %w", a.ID, err)
				}
			}
			budget := spend.CeilingName(a.Ceiling)
			g.deps.Logger.WarnContext(ctx, "a budget has reached a threshold", "org", a.Org, "scope", a.Scope.String(), "budget", budget,
				"percent", a.Percent, "used", spend.AmountText(a.Ceiling, a.Used), "limit", spend.AmountText(a.Ceiling, a.Limit))
			count.Add(ctx, 1, metric.WithAttributes(attribute.String("org", a.Org), attribute.String("budget", budget), attribute.Int64("percent", a.Percent)))
			return nil
		},
	}, nil
}

// budgetAlert is an alert as receivers get it; amounts are USD, or counts.
type budgetAlert struct {
	Org     string      `json:"org"`
	Scope   string      `json:"scope"`
	Budget  string      `json:"budget"`
	Percent int64       `json:"percent"`
	Used    json.Number `json:"used"`
	Limit   json.Number `json:"limit"`
}

func (g *Gateway) deliver(ctx context.Context, c *webhook.Config, a *spend.Alert) error {
	sender, err := webhook.New(c, g.deps.Now)
	if err != nil {
		return err
	}
	return sender.Send(ctx, a.ID, "budget.threshold", a.At, budgetAlert{
		Org: a.Org, Scope: a.Scope.String(), Budget: spend.CeilingName(a.Ceiling), Percent: a.Percent,
		Used: json.Number(spend.AmountText(a.Ceiling, a.Used)), Limit: json.Number(spend.AmountText(a.Ceiling, a.Limit)),
	})
}
