package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// budgetData holds the data of the Budgets page.
type budgetData struct {
	listing

	Budgets part[money.BudgetList]
	Fits    part[operator.Fits]
	// FitsTeam is the selected team, or otherwise the first one; "" without teams. FitsForm selects the team whose budgets apply too. FitsText names the budget that leaves the least, and FitsTable lists the GPUs that
	// fit into it. FitsTable is nil if nothing fits.
	FitsTeam  string
	FitsForm  form
	FitsText  string
	FitsTable *table
	// FitsMore links to all GPU types, or is nil if all are shown.
	FitsMore *button
}

// budgetViews lists the tabs of the Budgets page: the parameter view, the title, and the sort order of the budgets.
//
//nolint:gochecknoglobals // read only
var budgetViews = []struct{ view, title, sort string }{
	{"", "All", ""}, {atRisk, "At risk", "exhaustion"}, {"percent", "By share used", "percent"}, {asTree, "By team", asTree},
}

// Views of the Budgets page.
const (
	asTree = "scope"
	atRisk = "risk"
)

func loadBudgets(v *visit) (any, int, string) {
	d, view := budgetData{listing: v.filtered(
		field{Name: "team", Label: "Team", Type: "select", Options: names("All teams", v.Teams(), "")},
		field{Name: "search", Label: "Search", Type: "search", Placeholder: "Team or key"},
	)}, v.Query("view")
	q, fits := v.given("team", "search", "cursor"), v.given("team")
	if teams := v.Teams(); v.Query("team") == "" && len(teams) > 0 {
		fits.Set("team", teams[0])
	}
	d.FitsTeam = fits.Get("team")
	q.Set("limit", "100")
	if view == atRisk {
		q.Set("at_risk", "true")
	}
	for _, t := range budgetViews {
		d.Tabs = append(d.Tabs, tab{Title: t.title, Path: v.With("view", t.view, "cursor", ""), Here: view == t.view})
		if view == t.view && t.sort != "" {
			q.Set("sort", t.sort)
		}
	}
	var used part[money.Costs]
	together(
		func() { d.Budgets = ask[money.BudgetList](v, budgetRow, q) },
		func() { d.Fits = ask[operator.Fits](v, fitsRow, fits) },
		func() { used = ask[money.Costs](v, history, with(fits, "by", "gpu", "bucket", "total")) },
	)
	if !d.Budgets.OK() {
		return d, d.Budgets.Status, d.Budgets.Fault
	}
	d.Table = budgetTable(v, &d.Budgets.Is, view == asTree)
	d.Table.Empty = d.empty(v, d.Table.Empty)
	d.fits(v, &used.Is)
	return d, 0, ""
}

// budgetAmount formats an amount of a budget as money or as a number.
func budgetAmount(name, text string) string {
	switch name {
	case "gpus", "pods", "workers", "sandboxes":
		return count(int64(decimal(text)))
	case "volume_gb":
		return text + " GB"
	}
	return amount(text)
}

// budgetBar returns the bar of a budget with its forecast.
func budgetBar(b *money.BudgetRow) bar {
	forecast := 0.0
	if b.Forecast != nil {
		forecast = decimal(b.Forecast.Expected)
	}
	out := newBar(decimal(b.Limit), decimal(b.Used), decimal(b.Reserved), forecast)
	if countBudget(b.Name) {
		out.Label = budgetAmount(b.Name, b.Used) + " used and " + budgetAmount(b.Name, b.Reserved) + " reserved of " + budgetAmount(b.Name, b.Limit)
	}
	return out
}

// isHourly reports whether a budget limits the hourly cost instead of the cost of a period.
func isHourly(b *money.BudgetRow) bool { return b.Name == "per_hour" }

// budgetCell shows an amount of a budget.
func budgetCell(b *money.BudgetRow, text string) cell {
	switch {
	case b.Left == "":
		return textCell("Unknown")
	case isHourly(b):
		return textCell(budgetAmount(b.Name, text), "per hour")
	}
	return textCell(budgetAmount(b.Name, text))
}

// takenText describes the used and reserved amounts of a budget, which add up to the limit together with the remaining amount.
func takenText(b *money.BudgetRow) string {
	text := budgetAmount(b.Name, b.Used)
	if decimal(b.Reserved) > 0 {
		text += " + " + budgetAmount(b.Name, b.Reserved)
	}
	if isHourly(b) {
		text = "running now " + text + " per hour"
	}
	return text + " of " + budgetAmount(b.Name, b.Limit)
}

// budgetColumns returns the columns of a short list of budgets.
func budgetColumns(v *visit) []column[money.BudgetRow] {
	return []column[money.BudgetRow]{
		{Title: "Budget", Cell: func(b *money.BudgetRow) cell { return textCell(title(b.Scope), words(b.Name)) }},
		{Title: takenTitle, Cell: func(b *money.BudgetRow) cell {
			if b.Left == "" {
				return textCell("Unknown")
			}
			return cell{Bar: new(budgetBar(b)), Sub: takenText(b)}
		}},
		{Title: "Remaining", Number: true, Cell: func(b *money.BudgetRow) cell { return budgetCell(b, b.Left) }},
		{Title: "Outlook", Cell: func(b *money.BudgetRow) cell { return outlook(v, b) }},
	}
}

// takenTitle is the title of columns with bars and percentages of budgets.
const takenTitle = "Used + reserved"

// forecastColumn shows the forecast of a budget with its range.
func forecastColumn() column[money.BudgetRow] {
	return column[money.BudgetRow]{Key: "forecast", Title: "Forecast", Number: true, Cell: func(b *money.BudgetRow) cell {
		if b.Forecast == nil {
			return textCell("–")
		}
		return textCell(amount(b.Forecast.Expected), amount(b.Forecast.Low)+" to "+amount(b.Forecast.High))
	}}
}

// scopeCell shows the scope of a budget. Keys are indented below their team.
func scopeCell(b *money.BudgetRow) cell {
	switch b.Kind {
	case "organisation":
		return textCell("Organisation")
	case "team":
		return textCell(b.ID, "team")
	}
	return textCell(b.ID, strings.TrimSuffix("key, "+b.Team, ", "))
}

// budgetTable lists budgets. In a tree, each scope is shown once and links to its costs.
func budgetTable(v *visit, list *money.BudgetList, tree bool) table {
	rows := list.Budgets
	if tree {
		rows = inTree(rows)
	}
	columns := []column[money.BudgetRow]{
		{Key: "scope", Title: "Scope", Cell: scopeCell},
		{Key: "budget", Title: "Budget", Value: func(b *money.BudgetRow) any { return title(b.Name) }},
		{Key: "usage", Title: takenTitle, Cell: func(b *money.BudgetRow) cell {
			if isHourly(b) {
				return cell{Bar: new(budgetBar(b)), Sub: takenText(b)}
			}
			return cell{Bar: new(budgetBar(b)), Sub: strconv.Itoa(b.Percent) + "%"}
		}},
		{Key: "used", Title: "Used", Number: true, Cell: func(b *money.BudgetRow) cell {
			c := budgetCell(b, b.Used)
			if isHourly(b) {
				c.Sub = "running now"
			}
			return c
		}},
		{Key: "reserved", Title: "Reserved", Number: true, Cell: func(b *money.BudgetRow) cell {
			if isHourly(b) && decimal(b.Reserved) == 0 {
				return textCell("–")
			}
			return budgetCell(b, b.Reserved)
		}},
		{Key: "left", Title: "Remaining", Number: true, Cell: func(b *money.BudgetRow) cell { return budgetCell(b, b.Left) }},
		{Key: "limit", Title: "Limit", Number: true, Cell: func(b *money.BudgetRow) cell { return budgetCell(b, b.Limit) }},
		forecastColumn(),
		{Key: "exhausted", Title: "Outlook", Cell: func(b *money.BudgetRow) cell { return outlook(v, b) }},
	}
	return newTable(v, rows, tableSpec[money.BudgetRow]{
		Name: "budgets", Caption: "Budgets", Columns: columns, Next: v.older("cursor", list.Next), Prev: v.newest("cursor"),
		Path: func(b *money.BudgetRow) string {
			switch b.Kind {
			case "team":
				return v.Link("cost", "range", monthToDate, "team", b.ID, "by", "resource")
			case "key":
				return v.Link("cost", "range", monthToDate, "key", b.ID, "by", "resource")
			}
			return v.Link("cost", "range", monthToDate)
		},
		Empty: empty{
			Icon: "wallet", Title: "No budgets",
			Text: "Budgets of the organisation, its teams and its keys appear here. Set a budget in the configuration.",
		},
	})
}

// fitsText names the budget of which running resources leave over the least, and describes the rest of it.
func fitsText(v *visit, f *operator.Fits) string {
	text := "No daily, weekly, monthly, quarterly or total budget applies."
	if f.Left != "" {
		scope, name, _ := strings.Cut(f.Budget, ", ")
		text = fmt.Sprintf("%s remain in the budget that leaves the least for new resources (%s, %s).", amount(f.Left), scope, words(name))
	}
	if f.Resets != nil {
		text += " It resets at " + moment(v.When(f.Resets).At) + "."
		if decimal(f.Free) <= 0 {
			return text + " Nothing fits: running resources already use it up."
		}
		text += " If running resources continue until then, " + amount(f.Free) + " is left for new ones; the number of GPUs at once is for the time until then."
	}
	if f.PerHour != "" {
		scope, name, _ := strings.Cut(f.HourlyBudget, ", ")
		text += fmt.Sprintf(" New resources can cost at most %s per hour (%s, %s).", amount(f.PerHour), scope, words(name))
	}
	text += " Of the policies, only gpu_allow_list is considered"
	if f.Denied > 0 {
		text += ": it denies " + plural(f.Denied, "other GPU type")
	}
	return text + "."
}

// fits fills in the form and the GPUs that fit, starting with types that were used in the last 30 days.
func (d *budgetData) fits(v *visit, used *money.Costs) {
	d.FitsForm = v.filters(field{Name: "team", Label: "Also apply the budgets of", Type: "select", Options: names("", v.Teams(), d.FitsTeam)[1:]})
	d.FitsForm.Path, d.FitsForm.Button, d.FitsForm.Fields[0].ID = d.FitsForm.Path+"#fits", "Show", "fits-team"
	f := &d.Fits.Is
	d.FitsText = fitsText(v, f)
	list := f.GPUs
	if limited := f.Left != "" || f.PerHour != "" || len(list) > 0 && list[0].AtOnce != nil; !limited {
		d.FitsText = "No budget limits what " + cmp.Or(d.FitsTeam, "the organisation") + " can rent."
		return
	}
	if f.Resets != nil && decimal(f.Free) <= 0 {
		return
	}
	order := make(map[string]int)
	for i := range used.Rows { // the highest cost first
		order[used.Rows[i].GPU] = i - len(used.Rows)
	}
	slices.SortStableFunc(list, func(a, b operator.GPUFit) int { return cmp.Compare(order[a.GPU], order[b.GPU]) })
	if all := len(list); all > fewGPUs && v.Query("gpus") == "" {
		list = list[:fewGPUs]
		d.FitsMore = &button{Title: fmt.Sprintf("Show all %d GPU types", all), Path: v.With("gpus", "all") + "#fits"}
	}
	t := newTable(v, list, tableSpec[operator.GPUFit]{
		Name: "fits", Caption: "GPU hours that fit into the remaining budget", Whole: true,
		Columns: fitColumns(list, f.Resets != nil),
		Empty: empty{
			Icon: "wallet", Title: "No GPU types",
			Text: "The policy gpu_allow_list permits no GPU type with a known price.",
		},
	})
	d.FitsTable = &t
}

// fitColumns returns the columns of the GPUs that fit into a budget, which may reset. The duration is left out if every GPU can run until the
// reset.
func fitColumns(list []operator.GPUFit, resets bool) []column[operator.GPUFit] {
	atOnce := "GPUs at once"
	if resets {
		atOnce += " until the reset"
	}
	columns := []column[operator.GPUFit]{
		{Title: "GPU", Value: func(g *operator.GPUFit) any { return g.GPU }},
		{Title: "Lowest price", Number: true, Cell: func(g *operator.GPUFit) cell { return textCell(amount(g.PerHour)+" per hour", g.Cloud+" cloud") }},
		{Title: "One GPU runs for", Number: true, Cell: fitHours},
		{Title: atOnce, Number: true, Cell: func(g *operator.GPUFit) cell {
			if n := cmp.Or(g.UntilReset, g.AtOnce); n != nil {
				return textCell(count(*n))
			}
			return textCell("No limit")
		}},
	}
	if slices.ContainsFunc(list, func(g operator.GPUFit) bool { return !untilReset(&g) }) {
		return columns
	}
	return slices.Delete(columns, 2, 3)
}

// untilReset reports whether one GPU can run until the budget resets.
func untilReset(g *operator.GPUFit) bool { return g.UntilReset != nil && *g.UntilReset > 0 }

// fitHours shows the hours that one GPU can run.
func fitHours(g *operator.GPUFit) cell {
	switch n := decimal(g.Hours); {
	case g.Hours == "":
		return textCell("No limit")
	case untilReset(g):
		return textCell("Until the reset", g.Hours+" h")
	case n >= 72:
		return textCell(chart.Requests.Format(n)+" h", fmt.Sprintf("%.0f days", n/24))
	}
	return textCell(g.Hours + " h")
}

// inTree moves the budgets of keys below the budgets of their teams.
func inTree(list []money.BudgetRow) (out []money.BudgetRow) {
	keys := make(map[string][]money.BudgetRow)
	known := make(map[string]bool)
	for _, b := range list {
		known[b.ID] = known[b.ID] || b.Kind == "team"
		if b.Kind == "key" {
			keys[b.Team] = append(keys[b.Team], b)
		}
	}
	for i, b := range list {
		if b.Kind == "key" {
			if !known[b.Team] {
				out = append(out, b)
			}
			continue
		}
		out = append(out, b)
		if last := i+1 == len(list) || list[i+1].ID != b.ID || list[i+1].Kind != b.Kind; b.Kind == "team" && last {
			out = append(out, keys[b.ID]...)
		}
	}
	return out
}

// fewGPUs is the number of GPU types that the page shows initially.
const fewGPUs = 8
