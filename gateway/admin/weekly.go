package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// Weekly is the report of seven days on an organisation or a team, by the same numbers as the views of the present and of costs. Amounts
// are in USD.
type Weekly struct {
	Org  string `json:"org"`
	Team string `json:"team,omitempty"`
	// From is the first moment of the seven days, and To the first behind them, in UTC.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// USD is the cost of the seven days, and Before that of the seven before.
	USD    string `json:"usd"`
	Before string `json:"before"`
	// Shares are the costs of teams, or of the keys of a team, the dearest first.
	Shares []Share `json:"shares"`
	// Dearest are the dearest resources.
	Dearest []Share `json:"dearest"`
	// Budgets are those of the organisation and its teams, or of the team, as they are now.
	Budgets []money.NearBudget `json:"budgets"`
	// Month is the likely cost of this month, absent without an estimate.
	Month *money.Estimate `json:"month,omitempty"`
	// Idle is the cost of idle resources in a month, absent without any.
	Idle *money.IdleMoney `json:"idle,omitempty"`
	// Denied counts calls that policies have refused, the most frequent first.
	Denied []decisions.PolicyCount `json:"denied"`
	// Unknown names the parts that could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// Spend shows ledgers. Its methods are those of money.Money.
type Spend interface {
	Show(ctx context.Context, org string) (*money.Ledger, error)
	Costs(ctx context.Context, org string, q *spend.Query) (*money.Costs, error)
	Forecast(ctx context.Context, org string) (*money.Forecasts, error)
	Idle(ctx context.Context, org string) (*money.IdleList, error)
}

// Share is a part of a cost.
type Share struct {
	Name string `json:"name"`
	// Of describes a resource: its machine and its owner.
	Of  string `json:"of,omitempty"`
	USD string `json:"usd"`
}

// mostShares is the number of entries of a list of a report.
const mostShares = 10

// week is the time of a report.
const week = 7 * 24 * time.Hour

func (d Deps) reportRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/report", Summary: "The report of seven days on an organisation or a team", Role: row.Viewer, About: row.OfOrg, Watched: true, Ask: row.Do(d.report),
			Commands: []row.Command{{
				Use: "report ORG", Short: "Show the report of seven days on an organisation or a team", Example: "tollgate report acme\ntollgate report acme --team research --to 2026-11-23",
				Long: `Shows the report that alerts.report sends each week: the cost of seven days and of
the seven before, by team or key; the dearest resources; budgets as they are now;
idle money; and the refusals of policies.`,
			}},
		},
	}
}

// Weekly makes the report of the seven days before a time, on an organisation or on one of its teams.
func (d Deps) Weekly(ctx context.Context, org, team string, to time.Time) (*Weekly, error) {
	to = to.UTC()
	w := &Weekly{Org: org, Team: team, From: to.Add(-week), To: to, Shares: []Share{}, Dearest: []Share{}, Budgets: []money.NearBudget{}, Denied: []decisions.PolicyCount{}}
	costs := func(from time.Time, by ...spend.Dimension) (*money.Costs, error) {
		q := &spend.Query{From: from, To: from.Add(week), Bucket: spend.Total, By: by, Where: map[spend.Dimension][]string{}}
		if team != "" {
			q.Where[spend.ByTeam] = []string{team}
		}
		return d.Spend.Costs(ctx, org, q)
	}
	by := spend.ByTeam
	if team != "" {
		by = spend.ByKey
	}
	shares, err := costs(w.From, by)
	if err != nil {
		return nil, err
	}
	w.USD = shares.Total
	for i := range shares.Rows {
		c := &shares.Rows[i]
		w.Shares = append(w.Shares, Share{Name: strings.TrimSpace(c.Team + c.Key), USD: c.USD})
	}
	if before, err := costs(w.From.Add(-week)); w.known("the week before", err) {
		w.Before = before.Total
	}
	if dearest, err := costs(w.From, spend.ByResource, spend.ByTeam); w.known("the dearest resources", err) {
		for i := range dearest.Rows[:min(len(dearest.Rows), mostShares)] {
			c := &dearest.Rows[i]
			w.Dearest = append(w.Dearest, Share{Name: strings.TrimSpace(c.Name + " " + c.Resource), Of: strings.Trim(c.GPU+", "+c.Team, ", "), USD: c.USD})
		}
	}
	w.Shares = w.Shares[:min(len(w.Shares), mostShares)]
	w.present(ctx, &d)
	w.refusals(ctx, &d)
	return w, nil
}

// known reports whether a part could be read, and notes it if not. A BadRequestError is no such fault: there is nothing of it.
func (w *Weekly) known(what string, err error) bool {
	if _, none := errors.AsType[row.BadRequestError](err); err != nil && !none {
		w.Unknown = append(w.Unknown, what)
	}
	return err == nil
}

// scope is that of budgets and forecasts.
func (w *Weekly) scope() string {
	if w.Team != "" {
		return "team " + w.Team
	}
	return "organisation"
}

// present adds budgets, the forecast and idle money, as they are now.
func (w *Weekly) present(ctx context.Context, d *Deps) {
	if l, err := d.Spend.Show(ctx, w.Org); w.known("budgets", err) {
		for _, b := range l.Scopes {
			kind, _, _ := strings.Cut(b.Scope, " ")
			if b.Scope != w.scope() && (w.Team != "" || kind == "key") {
				continue
			}
			for _, budget := range b.Budgets {
				w.Budgets = append(w.Budgets, budget.Near(w.Org, b.Scope))
			}
		}
	}
	if f, err := d.Spend.Forecast(ctx, w.Org); w.known("the forecast", err) {
		if i := slices.IndexFunc(f.Scopes, func(f money.Forecast) bool { return f.Scope == w.scope() }); i >= 0 {
			w.Month = &f.Scopes[i].Month
		}
	}
	if idle, err := d.Spend.Idle(ctx, w.Org); w.known("idle resources", err) {
		w.Idle = idle.Sum(w.Org, w.Team)
	}
}

// refusals adds the refusals by policies.
func (w *Weekly) refusals(ctx context.Context, d *Deps) {
	counts, err := d.Counts(ctx, w.Org, w.From, w.To.Add(-time.Second))
	if !w.known("refusals", err) {
		return
	}
	calls := make(map[string]int64)
	for _, c := range counts {
		if c.Verdict == "denies" && (w.Team == "" || w.Team == c.Team) {
			calls[c.Policy] += c.Calls
		}
	}
	for policy, n := range calls {
		w.Denied = append(w.Denied, decisions.PolicyCount{Policy: policy, Verdict: "denies", Calls: n})
	}
	slices.SortFunc(w.Denied, func(a, b decisions.PolicyCount) int {
		if a.Calls != b.Calls {
			return int(b.Calls - a.Calls)
		}
		return strings.Compare(a.Policy, b.Policy)
	})
}

// Text writes the report for people, a line for each part.
func (w *Weekly) Text() string {
	var b strings.Builder
	of := w.Org
	if w.Team != "" {
		of += ", team " + w.Team
	}
	last := w.To.Add(-time.Second)
	fmt.Fprintf(&b, "*%s: %s to %s*\nCost: %s USD", of, w.From.Format(time.DateOnly), last.Format(time.DateOnly), w.USD)
	if w.Before != "" {
		fmt.Fprintf(&b, ", %s in the week before", w.Before)
	}
	if w.Month != nil {
		fmt.Fprintf(&b, "; this month about %s", w.Month.Expected)
	}
	line := func(name string, list []string) {
		if len(list) > 0 {
			b.WriteString("\n" + name + ": " + strings.Join(list, "; "))
		}
	}
	shares := func(list []Share) (out []string) {
		for _, s := range list {
			of := ""
			if s.Of != "" {
				of = " (" + s.Of + ")"
			}
			name := s.Name
			name = cmp.Or(name, "without an owner")
			out = append(out, name+of+" "+s.USD)
		}
		return out
	}
	line(map[bool]string{true: "Teams", false: "Keys"}[w.Team == ""], shares(w.Shares))
	line("Dearest", shares(w.Dearest))
	var budgets, denied []string
	for _, n := range w.Budgets {
		budgets = append(budgets, fmt.Sprintf("%s %s %d %%, %s left", n.Scope, n.Name, n.Percent, n.Left))
	}
	line("Budgets", budgets)
	if w.Idle != nil {
		line("Idle", []string{fmt.Sprintf("%d resources, %s USD a month", w.Idle.Resources, w.Idle.PerMonth)})
	}
	for _, c := range w.Denied {
		denied = append(denied, fmt.Sprintf("%s %d", c.Policy, c.Calls))
	}
	line("Refused by policies", denied)
	line("Not known", w.Unknown)
	return b.String()
}

// reporting says which report is made.
type reporting struct {
	row.Scoped

	Team row.Team   `query:"team" doc:"the report of this team; absent is that of the organisation"`
	To   row.Moment `query:"to" doc:"the first day behind the seven; absent is today, so that the last one is yesterday"`
}

func (d Deps) report(ctx context.Context, s row.Scope, p reporting) (*Weekly, error) {
	to := time.Time(p.To)
	if to.IsZero() {
		to = s.Now.UTC().Truncate(24 * time.Hour)
	}
	return d.Weekly(ctx, string(p.Org), string(p.Team), to)
}
