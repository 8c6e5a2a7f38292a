package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Alert reports that a budget has reached an alert threshold, or that the cost of the current hour is unusually high for a scope.
type Alert struct {
	// ID identifies the alert. It does not change if the alert is reported again.
	ID    string
	Org   string
	Scope Scope
	// Ceiling is the index of the scope's ceiling. Used and Limit are in micro-dollars for ceilings in money.
	Ceiling int
	// Percent is the highest threshold reached.
	Percent     int64
	Used, Limit int64
	// Usual is the usual cost of this hour in micro-dollars, and Used its cost so far. Usual is nil for a budget alert.
	Usual *int64
	At    time.Time

	name string // key of the alert in the NoticeStore
	rank string // orders alerts with the same name; a later alert has a larger rank
}

// NoticeStore is a small map of names to values for each organisation, shared by all gateways. It records which alerts were sent, which
// resources are idle or snoozed, and up to which hour the counted costs were compared with bills.
type NoticeStore interface {
	// Noticed returns all recorded values by name.
	Noticed(ctx context.Context, org string) (map[string]string, error)
	// Notice records a value under a name; "" deletes the name.
	Notice(ctx context.Context, org, name, value string) error
}

// Alerts sends an alert when a budget reaches a threshold or an hour is unusually expensive. For each budget it reports only the highest
// threshold reached: once per period for budgets with a period, once per day for rates and counts, and once per limit for a total. It
// reports unusual hours once a day. An alert that could not be sent is sent again at the next check. Alerts is safe for concurrent use.
type Alerts struct {
	Notices NoticeStore
	// History provides the usual costs.
	History *History
	Logger  *slog.Logger

	busy sync.Map // organisations whose alerts are being sent
}

// alertTimeout limits the time to send the alerts of one check.
const alertTimeout = 5 * time.Minute

// Check compares an organisation's budgets with its ledger, and the current hour with its usual cost. It calls send for each new alert,
// until send returns an error. Check does nothing while another Check of the same organisation is running.
func (a *Alerts) Check(ctx context.Context, org string, p *Plan, state *State, send func(context.Context, *Alert) error) error {
	if _, busy := a.busy.LoadOrStore(org, true); busy {
		return nil
	}
	defer a.busy.Delete(org)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alertTimeout)
	defer cancel()
	alerts := p.alerts(org, state)
	if p.Unusual.Times > 0 {
		unusual, err := a.History.unusual(ctx, org, p.Unusual, state)
		if err != nil {
			a.Logger.WarnContext(ctx, "cannot compare the current hour with its usual cost", "org", org, "error", err.Error())
		}
		alerts = append(alerts, unusual...)
	}
	if len(alerts) == 0 {
		return nil
	}
	noticed, err := a.Notices.Noticed(ctx, org)
	if err != nil {
		return err
	}
	for i := range alerts {
		alert := &alerts[i]
		if noticed[alert.name] >= alert.rank {
			continue
		}
		if err := send(ctx, alert); err != nil {
			return err
		}
		if err := a.Notices.Notice(ctx, org, alert.name, alert.rank); err != nil {
			return err
		}
	}
	return nil
}

// alerts returns an alert for each budget that has reached a threshold.
func (p *Plan) alerts(org string, state *State) []Alert {
	if len(p.Thresholds) == 0 {
		return nil
	}
	var out []Alert
	calendar := state.Zone.Calendar(state.Now)
	for _, b := range state.Balances {
		for i, limit := range p.Budget(b.Scope).Limits() {
			used := b.used(i)
			percent := p.Reached(used, limit)
			if percent == 0 {
				continue
			}
			which := day
			if Accrues(i) {
				which = i - PerDay
			}
			start, _ := calendar.bounds(which, state.Now.UnixMilli())
			a := Alert{Org: org, Scope: b.Scope, Ceiling: i, Percent: percent, Used: used, Limit: limit, At: state.Now.UTC()}
			a.name = strings.Join([]string{string(b.Scope.Kind), b.Scope.ID, CeilingName(i)}, ":")
			if i == InTotal { // a total has no period, so a higher limit counts as a new budget
				a.name += ":" + AmountText(i, limit)
			}
			a.rank = fmt.Sprintf("%s:%03d", time.UnixMilli(start).In(state.Zone.Location()).Format(time.DateOnly), percent)
			a.ID = strings.Join([]string{org, a.name, a.rank}, ":")
			out = append(out, a)
		}
	}
	return out
}

// Reached returns the highest threshold reached, in percent, or 0 if none was reached.
func (p *Plan) Reached(used, limit int64) int64 {
	reached := int64(0)
	for _, percent := range p.Thresholds {
		if limit > 0 && used >= limit/100*percent+(limit%100*percent+99)/100 {
			reached = max(reached, percent)
		}
	}
	return reached
}

// used returns the amount that counts against a ceiling: the committed and reserved amounts, or the accrued cost.
func (b *Balance) used(ceiling int) int64 {
	if Accrues(ceiling) {
		return b.Accrued.list()[ceiling-PerDay]
	}
	return b.Committed[dimension(ceiling)] + b.Reserved[dimension(ceiling)]
}

// dimension returns the dimension that a ceiling limits; see [Accrues] for the others.
func dimension(ceiling int) int {
	return [Ceilings]int{
		PerHour: Burn, CeilingGPUs: GPUs, CeilingPods: Pods, CeilingWorkers: Workers,
		CeilingVolumeGB: VolumeGB, CeilingSandboxes: Sandboxes,
	}[ceiling]
}
