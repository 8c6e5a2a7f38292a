package alerts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// Weekly is the report of seven days for an organisation or a team. Its figures equal the figures of the spend and cost views. Amounts are in
// USD.
type Weekly struct {
	Org  string `json:"org"`
	Team string `json:"team,omitempty"`
	// From (inclusive) and To (exclusive) are the start and the end of the seven days, in UTC.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// USD is the cost of the seven days, and Before the cost of the seven days before.
	USD    string `json:"usd"`
	Before string `json:"before"`
	// Shares are the costs of the teams, or of the keys of a team, most expensive first.
	Shares []Share `json:"shares"`
	// MostExpensive lists the resources with the highest costs.
	MostExpensive []Share `json:"mostExpensive"`
	// Budgets are the current budgets of the organisation and its teams, or of the team.
	Budgets []money.NearBudget `json:"budgets"`
	// Month is the forecast for the current month; absent if unavailable.
	Month *money.Estimate `json:"month,omitempty"`
	// Idle is the monthly cost of idle resources; absent without idle resources.
	Idle *money.IdleCost `json:"idle,omitempty"`
	// Denied counts the calls refused by each policy, highest count first.
	Denied []decisions.PolicyCount `json:"denied"`
	// Unknown names the parts of the report that could not be read.
	Unknown []string `json:"unknown,omitempty"`
}

// Share is the part of the total cost that belongs to a team, a key or a resource.
type Share struct {
	Name string `json:"name"`
	// Of describes the machine and the owner of a resource.
	Of  string `json:"of,omitempty"`
	USD string `json:"usd"`
}

// mostShares is the maximum length of the lists in a report.
const mostShares = 10

// week is the length of the reported time.
const week = 7 * 24 * time.Hour

// Reports creates weekly reports. The endpoint of the zero Reports can be listed but not called.
type Reports struct {
	Money     *money.Money
	Decisions *decisions.Decisions
}

// Endpoints returns the admin endpoints for reports.
func (r Reports) Endpoints() []adminapi.Endpoint {
	return []adminapi.Endpoint{
		{
			Pattern: "GET /admin/report", Summary: "Weekly report of an organisation or a team", Role: adminapi.Viewer,
			Subject: adminapi.SubjectOrg, AuditsReads: true, Handler: adminapi.HandlerFor(r.report),
			Commands: []adminapi.Command{{
				Use: "report ORG", Heading: "Spend", Short: "Show the weekly report of an organisation or a team",
				Example: "tollgate report acme\ntollgate report acme --team research --to 2026-11-23",
				Long: `Shows the report that alerts.report sends each week: the cost of the last seven days
and of the seven days before, by team or key; the most expensive resources; the current budgets;
idle resources; and the refusals by policies.`,
			}},
		},
	}
}

// Weekly creates the report of the seven days before a time, for an organisation or one of its teams.
func (r Reports) Weekly(ctx context.Context, org, team string, to time.Time) (*Weekly, error) {
	w := newWeekly(org, team, to)
	costs := func(from time.Time, by ...ledger.Dimension) (*money.Costs, error) {
		q := &ledger.Query{From: from, To: from.Add(week), Bucket: ledger.Total, By: by, Where: map[ledger.Dimension][]string{}}
		if team != "" {
			q.Where[ledger.ByTeam] = []string{team}
		}
		return r.Money.Costs(ctx, org, q)
	}
	by := ledger.ByTeam
	if team != "" {
		by = ledger.ByKey
	}
	shares, err := costs(w.From, by)
	if err != nil {
		return nil, err
	}
	w.addShares(shares)
	if before, err := costs(w.From.Add(-week)); w.known("previous week", err) {
		w.Before = before.Total
	}
	if costs, err := costs(w.From, ledger.ByResource, ledger.ByTeam); w.known("most expensive resources", err) {
		w.addMostExpensive(costs)
	}
	if l, err := r.Money.Show(ctx, org); w.known("budgets", err) {
		w.addBudgets(l)
	}
	if f, err := r.Money.Forecast(ctx, org); w.known("forecast", err) {
		w.addForecast(f)
	}
	if idle, err := r.Money.Idle(ctx, org); w.known("idle resources", err) {
		w.Idle = idle.Sum(org, team)
	}
	if counts, err := r.Decisions.Counts(ctx, org, w.From, w.To.Add(-time.Second)); w.known("refusals", err) {
		w.addDenied(counts)
	}
	return w, nil
}

func newWeekly(org, team string, to time.Time) *Weekly {
	to = to.UTC()
	return &Weekly{
		Org: org, Team: team, From: to.Add(-week), To: to, Shares: []Share{}, MostExpensive: []Share{},
		Budgets: []money.NearBudget{}, Denied: []decisions.PolicyCount{},
	}
}

// known reports whether a part of the report could be read, and records the part's name if not. A BadRequestError is not a failure, because
// it means that the part does not apply.
func (w *Weekly) known(what string, err error) bool {
	if _, none := errors.AsType[adminapi.BadRequestError](err); err != nil && !none {
		w.Unknown = append(w.Unknown, what)
	}
	return err == nil
}

// scope returns the scope of the report's budgets and forecast.
func (w *Weekly) scope() string {
	if w.Team != "" {
		return "team " + w.Team
	}
	return "organisation"
}

// addShares adds the costs of teams, or of the keys of a team.
func (w *Weekly) addShares(costs *money.Costs) {
	w.USD = costs.Total
	for i := range costs.Rows[:min(len(costs.Rows), mostShares)] {
		c := &costs.Rows[i]
		w.Shares = append(w.Shares, Share{Name: strings.TrimSpace(c.Team + c.Key), USD: c.USD})
	}
}

// addMostExpensive adds the most expensive resources.
func (w *Weekly) addMostExpensive(costs *money.Costs) {
	for i := range costs.Rows[:min(len(costs.Rows), mostShares)] {
		c := &costs.Rows[i]
		w.MostExpensive = append(w.MostExpensive,
			Share{Name: strings.TrimSpace(c.Name + " " + c.Resource), Of: strings.Trim(c.GPU+", "+c.Team, ", "), USD: c.USD})
	}
}

// addBudgets adds the current budgets, except key budgets.
func (w *Weekly) addBudgets(l *money.Ledger) {
	for _, b := range l.Scopes {
		kind, _, _ := strings.Cut(b.Scope, " ")
		if b.Scope != w.scope() && (w.Team != "" || kind == "key") {
			continue
		}
		for _, budget := range b.Budgets {
			w.Budgets = append(w.Budgets, budget.ForScope(w.Org, b.Scope))
		}
	}
}

// addForecast adds the forecast for the current month.
func (w *Weekly) addForecast(f *money.Forecasts) {
	if i := slices.IndexFunc(f.Scopes, func(f money.Forecast) bool { return f.Scope == w.scope() }); i >= 0 {
		w.Month = &f.Scopes[i].Month
	}
}

// addDenied adds the refusals by policies.
func (w *Weekly) addDenied(counts []decisions.PolicyCount) {
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
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Policy, b.Policy))
	})
}

func (w *Weekly) sentence(string) string { return w.Text() }

// Text formats the report as text, with one line for each part.
func (w *Weekly) Text() string {
	var b strings.Builder
	of := w.Org
	if w.Team != "" {
		of += ", team " + w.Team
	}
	last := w.To.Add(-time.Second)
	fmt.Fprintf(&b, "*%s: %s to %s*\nCost: %s USD", of, w.From.Format(time.DateOnly), last.Format(time.DateOnly), cents(w.USD))
	if w.Before != "" {
		fmt.Fprintf(&b, " (previous week %s)", cents(w.Before))
	}
	if w.Month != nil {
		fmt.Fprintf(&b, "; this month about %s", cents(w.Month.Expected))
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
			out = append(out, cmp.Or(s.Name, "no owner")+of+" "+cents(s.USD))
		}
		return out
	}
	line(map[bool]string{true: "Teams", false: "Keys"}[w.Team == ""], shares(w.Shares))
	line("Most expensive", shares(w.MostExpensive))
	var budgets, denied []string
	for _, n := range w.Budgets {
		left := n.Left
		if strings.HasPrefix(n.Name, "per_") || n.Name == "total" {
			left = cents(left)
		}
		budgets = append(budgets, fmt.Sprintf("%s %s %d %%, %s left", n.Scope, n.Name, n.Percent, left))
	}
	line("Budgets", budgets)
	if w.Idle != nil {
		line("Idle", []string{fmt.Sprintf("%d resources, %s USD a month", w.Idle.Resources, cents(w.Idle.PerMonth))})
	}
	for _, c := range w.Denied {
		denied = append(denied, fmt.Sprintf("%s %d", c.Policy, c.Calls))
	}
	line("Refused by policies", denied)
	line("Unavailable", w.Unknown)
	return b.String()
}

// cents formats a decimal amount with two decimals and thousands separators. Any other text is returned as it is.
func cents(text string) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	out := strconv.FormatFloat(n, 'f', 2, 64)
	for i := len(out) - len(".00") - 3; i > 0 && out[i-1] != '-'; i -= 3 {
		out = out[:i] + "," + out[i:]
	}
	return out
}

// reportParams selects the report.
type reportParams struct {
	adminapi.OrgParam

	Team adminapi.Team      `query:"team" doc:"id of the team; default: the whole organisation"`
	To   adminapi.Timestamp `query:"to" doc:"day after the last reported day; default: today"`
}

func (r Reports) report(ctx context.Context, s adminapi.Principal, p reportParams) (*Weekly, error) {
	to := time.Time(p.To)
	if to.IsZero() {
		to = s.Now.UTC().Truncate(24 * time.Hour)
	}
	return r.Weekly(ctx, string(p.Org), string(p.Team), to)
}
