package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

func ledgerPage(l *money.Ledger, _ asked) page {
	var p page
	if !l.Complete {
		p.text = append(p.text, "The ledger is incomplete: calls that raise cost are refused until the next reconciliation.", "")
	}
	if l.Loss != nil {
		p.text = append(p.text, lossText(l.Loss), "")
	}
	scopes := sheet{{"scope", "usd/h", "reserved", "runs", "today", "month", "gpus", "pods", "workers", "gb", "sandboxes", "budget"}}
	budgets := budgetSheet()
	for _, b := range l.Scopes {
		a, r := b.Committed, b.Reserved
		scopes.add(b.Scope, usd(a.PerHour), usd(r.PerHour), usd(r.Runs), usd(b.Day), usd(b.Month), a.GPUs+r.GPUs, a.Pods+r.Pods,
			a.Workers+r.Workers, a.VolumeGB+r.VolumeGB, a.Sandboxes+r.Sandboxes, cmp.Or(pairs(b.Limits, " "), "none"))
		budgets.addBudgets(b.Scope, b.Budgets)
		for _, budget := range b.Budgets {
			if budget.Over != "" {
				p.text = append(p.text, fmt.Sprintf("Runs in progress may exceed the budget %s %s by at most %s USD.",
					b.Scope, budget.Name, budget.Over), "")
			}
		}
	}
	p.sheets = append(p.sheets, scopes)
	p.add(budgets)
	p.add(resourceSheet(l.Resources))
	return p
}

func resourceSheet(list []money.Resource) sheet {
	s := sheet{{"resource", "kind", "name", "owner", "usd/h", "gpus", "gpu", "since", "labels"}}
	for _, r := range list {
		s.add(r.ID, r.Kind, r.Name, owner(r.Team, r.Key), usd(r.Takes.PerHour), r.Takes.GPUs, r.GPU, r.Since, pairs(r.Labels, "="))
	}
	return s
}

func resourcesPage(l *money.ResourceList, _ asked) page {
	p := page{
		sheets: []sheet{resourceSheet(l.Resources)},
		text:   []string{fmt.Sprintf("%d resources, %s USD per hour.", l.All, dollars(l.PerHour))},
	}
	if l.Next != "" {
		p.text = append(p.text, sentence("next", l.Next))
	}
	p.text = append(p.text, "")
	return p
}

// lossText describes when and why the ledger was lost, and whether it was rebuilt.
func lossText(l *money.Loss) string {
	text := "The ledger was lost at " + moment(&l.At) + ": " + l.Reason + ". "
	if l.Rebuilt == nil {
		return text + "The ledger is being rebuilt."
	}
	return text + fmt.Sprintf("The ledger was rebuilt at %s: %d resources have an owner again, %d do not.",
		moment(l.Rebuilt), l.Returned, l.Unowned)
}

// budgetSheet returns a table of budgets that contains only the column names. Call addBudgets to add the budgets of a scope.
func budgetSheet() sheet {
	return sheet{{"scope", "budget", "limit", "used", "reserved", "left", "taken", "used up"}}
}

func (s *sheet) addBudgets(scope string, budgets []money.Budget) {
	for _, b := range budgets {
		of := func(amount string) any { return budgetCell(b.Name, amount) }
		s.add(scope, b.Name, of(b.Limit), of(b.Used), of(b.Reserved), of(b.Left), takenShare(b.Limit, b.Used, b.Reserved), b.UsedUp)
	}
}

func holdsPage(l *struct{ Holds []money.Hold }, _ asked) page {
	s := sheet{{
		"hold", "age", "state", "until", "operation", "name", "resource", "owner", "usd/h", "runs", "gpus", "pods", "workers",
		"gb", "sandboxes", "gateway", "decision",
	}}
	for _, h := range l.Holds {
		a := h.Reserves
		s.add(h.ID, age(h.Age), h.State, h.Until, h.Operation, h.Name, h.Resource, owner(h.Team, h.Key),
			usd(a.PerHour), usd(a.Runs), a.GPUs, a.Pods, a.Workers, a.VolumeGB, a.Sandboxes, h.Gateway, h.Decision)
	}
	return page{sheets: []sheet{s}}
}

// costsPage has a column for each group and, for resources, also for their names.
func costsPage(c *money.Costs, a asked) page {
	timed := a.Get("bucket") != "total"
	groups, header := grouping(a)
	if timed {
		header = append([]any{"start"}, header...)
	}
	s := sheet{append(header, "usd")}
	for _, r := range c.Rows {
		var row []any
		if timed {
			row = append(row, r.Start)
		}
		row = append(row, costCells(&r.CostGroup, groups)...)
		s = append(s, append(row, usd(r.USD)))
	}
	if a.out.people() {
		total := append([]any{"total"}, slices.Repeat([]any{""}, len(s[0])-1)...)
		total[len(total)-1] = usd(c.Total)
		s = append(s, total)
	}
	return page{sheets: []sheet{s}}
}

// grouping returns the groups of a request for costs, and the names of their columns.
func grouping(a asked) (groups []string, columns []any) {
	groups = strings.Split(strings.Join(a.Values["by"], ","), ",")
	for _, by := range groups {
		columns = append(columns, by)
		if by == "resource" {
			columns = append(columns, "kind", "name", "gpu", "dc")
		}
	}
	return groups, columns
}

// costCells returns the cells of a row of costs that name its groups.
func costCells(r *money.CostGroup, groups []string) (cells []any) {
	names := map[string]string{"team": r.Team, "key": r.Key, "kind": r.Kind, "gpu": r.GPU, "dc": r.DataCenter}
	for _, by := range groups {
		switch label, isLabel := strings.CutPrefix(by, "label:"); {
		case isLabel:
			cells = append(cells, r.Labels[label])
		case by == "resource":
			cells = append(cells, r.Resource, r.Kind, r.Name, r.GPU, r.DataCenter)
		default:
			cells = append(cells, names[by])
		}
	}
	return cells
}

func forecastPage(f *money.Forecasts, _ asked) page {
	s, budgets := sheet{{
		"scope", "usd/h", "today", "day", "day low", "day high", "this month", "month", "month low",
		"month high", "days",
	}}, budgetSheet()
	for _, r := range f.Scopes {
		budgets.addBudgets(r.Scope, r.Budgets)
		s.add(r.Scope, usd(r.PerHour), usd(r.Today), usd(r.Day.Expected), usd(r.Day.Low), usd(r.Day.High),
			usd(r.ThisMonth), usd(r.Month.Expected), usd(r.Month.Low), usd(r.Month.High), r.Days)
	}
	p := page{sheets: []sheet{s}}
	p.add(budgets)
	return p
}

func idlePage(l *money.IdleList, a asked) page {
	if l.At == nil && a.out.people() {
		return page{text: []string{"The platform has not been checked yet."}}
	}
	s := sheet{{"resource", "kind", "name", "owner", "reason", "since", "usd_per_month", "snoozed_until", "stop_at"}}
	for _, r := range l.Resources {
		s.add(r.ID, r.Kind, r.Name, owner(r.Team, r.Key), r.Reason, r.Since, usd(r.PerMonth), r.SnoozedUntil, r.StopAt)
	}
	return page{sheets: []sheet{s}}
}

func adjustedLine(a *money.AdjustedAccrual) string {
	line := fmt.Sprintf("%s: %s USD today (%s), %s USD this month (%s); request %s",
		a.Scope, a.Day, signed(a.DayChange), a.Month, signed(a.MonthChange), a.RequestID)
	if a.Period != "" {
		line = fmt.Sprintf("%s: %s USD in the %s (%s); request %s", a.Scope, a.Accrued, a.Period, signed(a.Change), a.RequestID)
	}
	if a.Repeated {
		line += " made this adjustment before; nothing was changed"
	}
	return line
}

// signed adds a sign to an amount.
func signed(amount string) string {
	if strings.HasPrefix(amount, "-") {
		return amount
	}
	return "+" + amount
}

func snoozedLine(k *money.Snoozed) string {
	if k.Until == nil {
		return k.Resource + " is no longer snoozed"
	}
	return k.Resource + " is snoozed until " + moment(k.Until)
}
