package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// asked holds the parameters of a request and the output format.
type asked struct {
	url.Values

	out *output
}

// page is a response formatted as tables. The sentences before the tables are for people.
type page struct {
	said   []string
	sheets []sheet
}

// add adds a table if it has rows.
func (p *page) add(s sheet) {
	if len(s) > 1 {
		p.sheets = append(p.sheets, s)
	}
}

// view formats a JSON response as a page.
type view func(text []byte, a asked) (page, error)

// of returns a view for responses of type A.
func of[A any](show func(answer *A, a asked) page) view {
	return func(text []byte, a asked) (page, error) {
		answer := new(A)
		if err := json.Unmarshal(text, answer); err != nil {
			return page{}, err
		}
		return show(answer, a), nil
	}
}

// told returns a view that prints a sentence for people and a table for programs.
func told[A any](say func(answer *A) string) view {
	return func(text []byte, a asked) (page, error) {
		if !a.out.people() {
			return plain(reflect.TypeFor[A]())(text, a)
		}
		return of(func(answer *A, _ asked) page { return page{said: []string{say(answer)}} })(text, a)
	}
}

// views returns the views of commands that do not use the default view, by command.
func views() map[string]view {
	return map[string]view{
		"status":          of(overviewPage),
		"limits show":     of(limitsPage),
		"spend show":      of(ledgerPage),
		"spend resources": of(resourcesPage),
		"spend holds":     of(holdsPage),
		"spend holds release": told(func(h *money.Hold) string {
			return fmt.Sprintf("%s is released: it was %s for %s (%s)", h.ID, h.State, age(h.Age), owner(h.Team, h.Key))
		}),
		"spend adjust": told(adjustedLine),
		"spend reconcile": told(func(r *money.Reconciled) string {
			return fmt.Sprintf("%d resources: %d adopted, %d removed, %d changed. Holds: %d carried out, %d released, %d open.",
				r.Resources, r.Adopted, r.Removed, r.Changed, r.Found, r.Released, r.Open)
		}),
		"spend history":   of(costsPage),
		"spend top":       of(costsPage),
		"spend forecast":  of(forecastPage),
		"spend idle":      of(idlePage),
		"spend keep":      told(keptLine),
		"approvals list":  of(approvalsPage),
		"approvals grant": told(grantedLine),
		"approvals deny":  told(func(r *approval.Record) string { return fmt.Sprintf("%s: denied until %s", r.ID, moment(&r.Until)) }),
		"decisions":       of(decisionsPage),
		"audit list":      of(auditPage),
		"config show": told(func(c *operator.InForce) string {
			return fmt.Sprintf("# Revision %s, in force since %s\n%s", c.Revision, moment(&c.Loaded), strings.TrimSuffix(c.YAML, "\n"))
		}),
		"config diff":    told(diffText),
		"report":         told(func(w *alerts.Weekly) string { return strings.ReplaceAll(w.Text(), "*", "") }),
		"migrate report": of(legacyPage),
		"envoy status":   of(envoysPage),
	}
}

// diffText formats the difference between two configurations.
func diffText(d *operator.ConfigDiff) string {
	switch {
	case d.Fault != "":
		return "The file would not be taken: " + d.Fault
	case d.Diff == "":
		return "Nothing that is shown differs between " + d.From + " and " + d.To + "."
	}
	return strings.TrimSuffix(d.Diff, "\n")
}

// overviewPage lists unavailable parts first, then gateways with an old configuration, then a table for each non-empty list, and a sentence
// for each empty list. A list with an unavailable part has no such sentence.
func overviewPage(o *operator.Overview, _ asked) (p page) {
	for _, what := range o.Unknown {
		p.said = append(p.said, "Unknown: "+what+".")
	}
	for _, g := range o.Gateways {
		if g.Fault != "" {
			p.said = append(p.said, fmt.Sprintf("Gateway %s has refused the newest configuration: %s", g.Instance, g.Fault))
		}
		if len(g.Restart) > 0 {
			p.said = append(p.said, fmt.Sprintf("Gateway %s must be restarted for changed settings: %s", g.Instance, strings.Join(g.Restart, ", ")))
		}
	}
	for _, part := range []struct {
		list        any
		known, none string
	}{
		{o.Gateways, "", ""},
		{o.Approvals, operator.PartApprovals, "No request waits for approval."},
		{o.Budgets, operator.PartBudgets, "No budget is near its end."},
		{o.Refused, operator.PartRefusals, "Nothing was refused today."},
		{o.Idle, operator.PartIdle, "No money is spent on idle resources."},
		{o.Drift, operator.PartBudgets, "No ledger differs from the platform."},
	} {
		if list := reflect.ValueOf(part.list); list.Len() > 0 {
			p.sheets = append(p.sheets, plainSheet(list))
		} else if part.none != "" && o.Knows(part.known) {
			p.said = append(p.said, part.none)
		}
	}
	for _, what := range o.Off {
		p.said = append(p.said, "Switched off: "+what+".")
	}
	if len(p.said) > 0 {
		p.said = append(p.said, "")
	}
	return p
}

func limitsPage(l *operator.LimitList, _ asked) page {
	t := sheet{{"scope", "window", "used", "limit", "left", "resets in", "leased"}}
	for _, w := range l.Windows {
		var limit, left any = "none", ""
		if w.Limit > 0 {
			limit, left = w.Limit, w.Remaining
		}
		leases := make([]string, len(w.Leases))
		for i, l := range w.Leases {
			leases[i] = fmt.Sprintf("%s: %d", l.Gateway, l.Held)
		}
		t.add(w.Scope, w.Window, w.Used, limit, left, time.Duration(w.ResetSeconds)*time.Second, strings.Join(leases, ", "))
	}
	return page{sheets: []sheet{t}}
}

func ledgerPage(l *money.Ledger, _ asked) page {
	var p page
	if !l.Complete {
		p.said = append(p.said, "The ledger is not complete: what raises cost is refused until it was compared with the platform.", "")
	}
	if l.Loss != nil {
		p.said = append(p.said, lossText(l.Loss), "")
	}
	scopes := sheet{{"scope", "usd/h", "reserved", "runs", "today", "month", "gpus", "pods", "workers", "gb", "sandboxes", "budget"}}
	budgets := budgetSheet()
	for _, b := range l.Scopes {
		a, r := b.Committed, b.Reserved
		scopes.add(b.Scope, usd(a.PerHour), usd(r.PerHour), usd(r.Runs), usd(b.Day), usd(b.Month), a.GPUs+r.GPUs, a.Pods+r.Pods, a.Workers+r.Workers, a.VolumeGB+r.VolumeGB, a.Sandboxes+r.Sandboxes, cmp.Or(pairs(b.Limits, " "), "none"))
		budgets.addBudgets(b.Scope, b.Budgets)
		for _, budget := range b.Budgets {
			if budget.Over != "" {
				p.said = append(p.said, fmt.Sprintf("Runs under way may pass the budget %s %s by %s USD at most.", b.Scope, budget.Name, budget.Over), "")
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

// resourceList is a list of resources. Callers get all resources at once, without a sum.
type resourceList struct {
	Resources     []money.Resource
	All           int
	PerHour, Next string
}

func resourcesPage(l *resourceList, _ asked) page {
	p := page{sheets: []sheet{resourceSheet(l.Resources)}, said: []string{fmt.Sprintf("%d resources, %s USD per hour.", l.All, dollars(l.PerHour))}}
	if l.Next != "" {
		p.said = append(p.said, sentence("next", l.Next))
	}
	p.said = append(p.said, "")
	return p
}

// pairs formats the entries of a map.
func pairs(m map[string]string, between string) string {
	list := make([]string, 0, len(m))
	for name, value := range m {
		list = append(list, name+between+value)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// lossText describes a loss of ledger data and its time.
func lossText(l *money.Loss) string {
	text := "The ledger was lost at " + moment(&l.At) + ": " + l.Reason + ". "
	if l.Rebuilt == nil {
		return text + "It is being rebuilt."
	}
	return text + fmt.Sprintf("It was rebuilt at %s: %d resources have their owner back, %d have none.", moment(l.Rebuilt), l.Returned, l.Unowned)
}

// budgetSheet returns a table of budgets with only its header. Call addBudgets for each scope.
func budgetSheet() sheet {
	return sheet{{"scope", "budget", "limit", "used", "reserved", "left", "taken", "used up"}}
}

func (s *sheet) addBudgets(scope string, budgets []money.Budget) {
	for _, b := range budgets {
		of := func(amount string) any { return budgetCell(b.Name, amount) }
		s.add(scope, b.Name, of(b.Limit), of(b.Used), of(b.Reserved), of(b.Left), takenShare(b.Limit, b.Used, b.Reserved), b.UsedUp)
	}
}

func owner(team, key string) string {
	return cmp.Or(strings.Trim(team+"/"+key, "/"), "organisation")
}

func holdsPage(l *struct{ Holds []money.Hold }, _ asked) page {
	s := sheet{{"hold", "age", "state", "until", "operation", "name", "resource", "owner", "usd/h", "runs", "gpus", "pods", "workers", "gb", "sandboxes", "gateway", "decision"}}
	for _, h := range l.Holds {
		a := h.Reserves
		s.add(h.ID, age(h.Age), h.State, h.Until, h.Operation, h.Name, h.Resource, owner(h.Team, h.Key),
			usd(a.PerHour), usd(a.Runs), a.GPUs, a.Pods, a.Workers, a.VolumeGB, a.Sandboxes, h.Gateway, h.Decision)
	}
	return page{sheets: []sheet{s}}
}

// age formats seconds for people.
func age(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

// costsPage has a column for each group and, for resources, also for their names.
func costsPage(c *money.Costs, a asked) page {
	timed := a.Get("bucket") != "total"
	groups := strings.Split(strings.Join(a.Values["by"], ","), ",")
	var header []any
	if timed {
		header = append(header, "start")
	}
	for _, by := range groups {
		header = append(header, by)
		if by == "resource" {
			header = append(header, "kind", "name", "gpu", "dc")
		}
	}
	s := sheet{append(header, "usd")}
	for _, r := range c.Rows {
		var row []any
		if timed {
			row = append(row, r.Start)
		}
		for _, by := range groups {
			row = append(row, costCells(&r, by)...)
		}
		s = append(s, append(row, usd(r.USD)))
	}
	if a.out.people() {
		total := append([]any{"total"}, slices.Repeat([]any{""}, len(s[0])-1)...)
		total[len(total)-1] = usd(c.Total)
		s = append(s, total)
	}
	return page{sheets: []sheet{s}}
}

// costCells returns the cells of one group.
func costCells(r *money.Cost, by string) []any {
	if label, ok := strings.CutPrefix(by, "label:"); ok {
		return []any{r.Labels[label]}
	}
	if by == "resource" {
		return []any{r.Resource, r.Kind, r.Name, r.GPU, r.DataCenter}
	}
	return []any{map[string]string{"team": r.Team, "key": r.Key, "kind": r.Kind, "gpu": r.GPU, "dc": r.DataCenter}[by]}
}

func forecastPage(f *money.Forecasts, _ asked) page {
	s, budgets := sheet{{"scope", "usd/h", "today", "day", "day low", "day high", "this month", "month", "month low", "month high", "days"}}, budgetSheet()
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
		return page{said: []string{"The platform was not looked at yet."}}
	}
	s := sheet{{"resource", "kind", "name", "owner", "reason", "since", "usd_per_month", "kept_until", "stop_at"}}
	for _, r := range l.Resources {
		s.add(r.ID, r.Kind, r.Name, owner(r.Team, r.Key), r.Reason, r.Since, usd(r.PerMonth), r.Kept, r.StopAt)
	}
	return page{sheets: []sheet{s}}
}

// moment formats a time in RFC 3339, or returns "" for nil.
func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func adjustedLine(a *money.AdjustedAccrual) string {
	line := fmt.Sprintf("%s: %s USD today (%s), %s USD this month (%s); request %s", a.Scope, a.Day, signed(a.DayChange), a.Month, signed(a.MonthChange), a.RequestID)
	if a.Period != "" {
		line = fmt.Sprintf("%s: %s USD in the %s (%s); request %s", a.Scope, a.Accrued, a.Period, signed(a.Change), a.RequestID)
	}
	if a.Repeated {
		line += " made this adjustment before, nothing was changed"
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

func keptLine(k *money.Snoozed) string {
	if k.Until == nil {
		return k.Resource + " is no longer kept"
	}
	return k.Resource + " is kept until " + moment(k.Until)
}

func approvalsPage(l *struct{ Approvals []approval.Record }, _ asked) page {
	t := sheet{{"approval", "state", "until", "caller", "call", "asks", "usd", "per", "refused by", "answered by", "used by"}}
	for _, r := range l.Approvals {
		by := make([]string, len(r.Refusals))
		for i, refusal := range r.Refusals {
			by[i] = refusal.By
		}
		answered := ""
		if r.Answer != nil {
			answered = r.Answer.By
		}
		t.add(r.ID, r.State, r.Until, owner(r.Team, r.Key), r.Call, r.Asks, usd(r.USD), r.Per, strings.Join(by, ", "), answered, r.UsedBy)
	}
	return page{sheets: []sheet{t}}
}

func grantedLine(r *approval.Record) string {
	price := "of unknown price"
	if r.Answer != nil && r.Answer.MaxUSD != "" {
		price = fmt.Sprintf("for at most %s USD per %s", r.Answer.MaxUSD, r.Per)
	}
	return fmt.Sprintf("%s: %s may make %s once until %s, %s", r.ID, owner(r.Team, r.Key), r.Call, moment(&r.Until), price)
}

func decisionsPage(l *decisions.List, _ asked) page {
	t := sheet{decisionColumns()}
	for _, s := range l.Decisions {
		t = append(t, decisionCells(&s))
	}
	p := page{sheets: []sheet{t}}
	if l.Incomplete != "" {
		p.said = []string{l.Incomplete}
	}
	return p
}

func decisionColumns() []any {
	return []any{"decision", "time", "org", "team", "key", "operation", "status", "policies", "reason"}
}

func decisionCells(s *explain.Summary) []any {
	var said []string
	if s.Own != nil {
		said = append(said, strings.TrimSpace(s.Own.Resource+" "+s.Own.Did))
	}
	if s.Dry {
		said = append(said, "dry run: "+string(s.Verdict))
	}
	for _, part := range []struct {
		word string
		list []string
	}{{"denied", s.Denied}, {"warned", s.Warned}, {"shadow", s.Shadowed}, {"excepted", s.Excepted}, {"changed", s.Changed}} {
		if len(part.list) > 0 {
			said = append(said, part.word+" "+strings.Join(part.list, ", "))
		}
	}
	return []any{s.DecisionID, s.Time, s.Org, s.Team, s.Key, s.Dialect + " " + s.Operation, status(s.Status), strings.Join(said, "; "), s.Reason}
}

// legacyPage has more columns for programs than for people.
func legacyPage(l *legacy.List, a asked) page {
	if !a.out.people() {
		t := sheet{{"org", "key", "program", "interface", "operation", "calls", "2xx", "4xx", "5xx", "first", "last", "v2", "lost"}}
		for _, c := range l.Calls {
			t.add(c.Org, c.Key, c.Agent, c.Dialect, c.Operation, c.Count, c.Statuses["2xx"], c.Statuses["4xx"], c.Statuses["5xx"],
				c.First, c.Last, strings.Join(c.V2, " "), strings.Join(usage.Names(c.Lost), " "))
		}
		return page{sheets: []sheet{t}}
	}
	if len(l.Calls) == 0 {
		return page{said: []string{"No calls to retired interfaces."}}
	}
	t := sheet{{"org", "key", "program", "interface", "operation", "calls", "failed", "last seen", "in v2", "without a place in v2"}}
	for _, c := range l.Calls {
		t.add(c.Org, c.Key, c.Agent, c.Dialect, c.Operation, c.Count, c.Statuses["4xx"]+c.Statuses["5xx"],
			c.Last, cmp.Or(strings.Join(c.V2, ", "), "nothing"), lostFields(c))
	}
	return page{sheets: []sheet{t}}
}

// lostFields lists the fields that have no equivalent in v2, most frequent first.
func lostFields(c legacy.Call) string {
	fields := usage.Names(c.Lost)
	for i, f := range fields {
		fields[i] = fmt.Sprintf("%s (%d)", f, c.Lost[f])
	}
	return strings.Join(fields, ", ")
}

func envoysPage(l *envoy.Status, _ asked) page {
	groups := sheet{{"group", "envoys", "here", "refused since", "why"}}
	for _, g := range l.Groups {
		since, why := time.Time{}, ""
		if r := g.Refused; r != nil {
			since, why = r.Since, r.Type+" by "+r.Node+": "+r.Reason
			if r.Withdrawn {
				why = "withdrawn, " + why
			}
		}
		groups.add(g.Group, g.Nodes, g.Here, since, why)
	}
	t := sheet{{"node", "group", "envoy", "resources", "served", "accepted", "refused"}}
	for _, n := range l.Nodes {
		for _, r := range n.Resources {
			refused := ""
			if r.Refused != "" {
				refused = r.Refused + ": " + r.Reason
			}
			t.add(n.ID, n.Group, n.Version, r.Type, r.Serving, r.Accepted, refused)
		}
	}
	return page{sheets: []sheet{groups, t}}
}
