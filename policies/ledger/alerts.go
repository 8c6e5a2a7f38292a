package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Alert says that a budget has reached one of its organisation's thresholds, or that an
// hour has cost a scope many times its usual.
type Alert struct {
	// ID is the same for every report of the same alert.
	ID    string
	Org   string
	Scope Scope
	// Ceiling says which of the scope's ceilings it is; those in money are in
	// micro-dollars.
	Ceiling int
	// Percent is the highest threshold reached.
	Percent     int64
	Used, Limit int64
	// Usual is the usual cost of such an hour, and Used its cost so far, in
	// micro-dollars; nil for an alert about a budget.
	Usual *int64
	At    time.Time

	name string // its subject, in the store
	rank string // of the alerts about it, later ones are larger
}

// NoticeStore remembers for all gateways the alerts that were given, and the idle resources.
type NoticeStore interface {
	// Noticed returns, by name, the last text given to Notice.
	Noticed(ctx context.Context, org string) (map[string]string, error)
	// Notice remembers a value under a name; "" forgets the name.
	Notice(ctx context.Context, org, name, value string) error
}

// Alerts tells of budgets that reach a threshold: the highest one reached, once for
// each period of the budget, or day for rates and counts, and once for each limit of a total; and of unusual hours, once a day. An alert that could not be
// told of is repeated at the next look. It is safe for concurrent use.
type Alerts struct {
	Notices NoticeStore
	// History gives the usual costs.
	History *History
	Logger  *slog.Logger

	busy sync.Map // organisations that are being told of
}

// alertTimeout bounds how long telling the alerts of one look may take.
const alertTimeout = 5 * time.Minute

// Check compares the budgets of an organisation with the spend, and the hour with its usual, and calls tell with each new alert until tell
// returns an error. It does nothing while another Tell about the organisation lasts.
func (a *Alerts) Check(ctx context.Context, org string, p *Plan, state *State, tell func(context.Context, *Alert) error) error {
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
			a.Logger.WarnContext(ctx, "it is not known whether an hour is unusual", "org", org, "error", err.Error())
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
		if err := tell(ctx, alert); err != nil {
			return err
		}
		if err := a.Notices.Notice(ctx, org, alert.name, alert.rank); err != nil {
			return err
		}
	}
	return nil
}

// alerts lists the budgets that have reached a threshold.
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
			if i == InTotal { // without another period, a higher limit is a new budget
				a.name += ":" + AmountText(i, limit)
			}
			a.rank = fmt.Sprintf("%s:%03d", time.UnixMilli(start).In(state.Zone.Location()).Format(time.DateOnly), percent)
			a.ID = strings.Join([]string{org, a.name, a.rank}, ":")
			out = append(out, a)
		}
	}
	return out
}

// Threshold returns the highest threshold that is reached, in percent, 0 for none.
func (p *Plan) Reached(used, limit int64) int64 {
	reached := int64(0)
	for _, percent := range p.Thresholds {
		if limit > 0 && used >= limit/100*percent+(limit%100*percent+99)/100 {
			reached = max(reached, percent)
		}
	}
	return reached
}

// used is how much of a ceiling is used: committed and reserved, or accrued.
func (b *Balance) used(ceiling int) int64 {
	dimension := [Ceilings]int{PerHour: Burn, MaxGPUs: GPUs, MaxPods: Pods, MaxWorkers: Workers, MaxVolumeGB: VolumeGB, MaxSandboxes: Sandboxes}
	if Accrues(ceiling) {
		return b.Accrued.list()[ceiling-PerDay]
	}
	return b.Committed[dimension[ceiling]] + b.Reserved[dimension[ceiling]]
}
