package ui

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// budgetData holds the data of the Budgets page.
type budgetData struct {
	Budgets part[money.BudgetList]
	Fits    part[operator.Fits]
	Filters form
	Chips   []chip
	Table   table
	// FitsText names the tightest budget, and FitsTable lists the GPUs that fit into it.
	FitsText  string
	FitsTable table
	// FitsMore links to all GPU types, or is nil if all are shown.
	FitsMore *button

	tabs []tab
}

// Head implements headed.
func (d budgetData) Head(*frame) head { return head{Title: "Budgets", Tabs: d.tabs} }

// Sort orders of the Budgets page.
const (
	asTree  = "scope"
	atRisk  = "risk"
	byShare = "percent"
)

func loadBudgets(v *visit) (any, int, string) {
	d, view := budgetData{}, v.Query("view")
	q := url.Values{"limit": {"100"}, "sort": {asTree}}
	switch view {
	case atRisk:
		q.Set("sort", "exhaustion")
		q.Set("at_risk", "true")
	case byShare:
		q.Set("sort", byShare)
	}
	for _, name := range []string{"team", "search", "cursor"} {
		if value := v.Query(name); value != "" {
			q.Set(name, value)
		}
	}
	fits := url.Values{}
	if team := v.Query("team"); team != "" {
		fits.Set("team", team)
	}
	var used part[money.Costs]
	together(
		func() { d.Budgets = ask[money.BudgetList](v, budgetRow, q) },
		func() { d.Fits = ask[operator.Fits](v, fitsRow, fits) },
		func() { used = ask[money.Costs](v, history, with(fits, "by", "gpu", "bucket", "total")) },
	)
	d.Filters = v.filters(
		field{Name: "team", Label: "Team", Type: "select", Options: names("All teams", v.Teams(), "")},
		field{Name: "search", Label: "Search", Type: "search", Placeholder: "Team or key"},
	)
	d.Chips = v.chips(d.Filters)
	for _, t := range []tab{{Title: "All", Path: ""}, {Title: "At risk", Path: atRisk}, {Title: "By share used", Path: byShare}} {
		d.tabs = append(d.tabs, tab{Title: t.Title, Path: v.With("view", t.Path, "cursor", ""), Here: view == t.Path})
	}
	if !d.Budgets.OK() {
		return d, d.Budgets.Status, d.Budgets.Fault
	}
	d.Table = budgetTable(v, &d.Budgets.Is, view == "")
	d.Table.Empty = (&listing{Chips: d.Chips}).empty(v, d.Table.Empty)
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
	if budgetAmount(b.Name, b.Limit) != amount(b.Limit) {
		out.Label = countLabel(b.Name, b.Used, b.Reserved, b.Limit)
	}
	return out
}

// countLabel describes the bar of a budget that is a count or a size.
func countLabel(name, used, reserved, limit string) string {
	return budgetAmount(name, used) + " used and " + budgetAmount(name, reserved) + " reserved of " + budgetAmount(name, limit)
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
		{Key: "budget", Title: "Budget", Cell: func(b *money.BudgetRow) cell { return textCell(title(b.Name)) }},
		{Key: "usage", Title: "Usage", Cell: func(b *money.BudgetRow) cell {
			shape := budgetBar(b)
			return cell{Bar: &shape, Sub: strconv.Itoa(b.Percent) + "%"}
		}},
		{Key: "used", Title: "Used", Number: true, Cell: func(b *money.BudgetRow) cell { return textCell(budgetAmount(b.Name, b.Used)) }},
		{
			Key: "reserved", Title: "Reserved", Number: true,
			Cell: func(b *money.BudgetRow) cell { return textCell(budgetAmount(b.Name, b.Reserved)) },
		},
		{Key: "left", Title: "Remaining", Number: true, Cell: func(b *money.BudgetRow) cell { return textCell(budgetAmount(b.Name, b.Left)) }},
		{Key: "limit", Title: "Limit", Number: true, Cell: func(b *money.BudgetRow) cell { return textCell(budgetAmount(b.Name, b.Limit)) }},
		{Key: "forecast", Title: "Forecast", Number: true, Cell: func(b *money.BudgetRow) cell {
			if b.Forecast == nil {
				return textCell("–")
			}
			return textCell(amount(b.Forecast.Expected), amount(b.Forecast.Low)+" to "+amount(b.Forecast.High))
		}},
		{Key: "exhausted", Title: "Outlook", Cell: func(b *money.BudgetRow) cell { return runsOut(v, b) }},
	}
	spec := tableSpec[money.BudgetRow]{
		Name: "budgets", Caption: "Budgets", Columns: columns,
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
	}
	if list.Next != "" {
		spec.Next = v.With("cursor", list.Next)
	}
	if v.Query("cursor") != "" {
		spec.Prev = v.With("cursor", "")
	}
	return newTable(v, rows, spec)
}

// runsOut shows whether and when a budget runs out.
func runsOut(v *visit, b *money.BudgetRow) cell {
	switch limit := decimal(b.Limit); {
	case limit > 0 && decimal(b.Used)+decimal(b.Reserved) >= limit:
		return cell{Status: &status{levelBad, "Used up"}}
	case b.UsedUp != "":
		day := b.UsedUp
		if at := boundary(b.UsedUp, v.zone(), 0); !at.IsZero() {
			day = at.Format("2 Jan 2006")
		}
		return cell{Status: &status{levelWarn, day}}
	case b.Ends != nil:
		c := cell{Status: &status{levelGood, "Within budget"}, Sub: "resets " + b.Ends.In(v.zone()).Format("2 Jan 15:04")}
		if b.AtRisk() {
			c.Status = &status{levelWarn, "Near limit"}
		}
		return c
	}
	return textCell("–")
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

// fits fills in the GPUs that fit, starting with types that were used in the last 30 days.
func (d *budgetData) fits(v *visit, used *money.Costs) {
	f := &d.Fits.Is
	switch {
	case f.Left != "":
		scope, name, _ := strings.Cut(f.Budget, ", ")
		d.FitsText = fmt.Sprintf("%s remain in the tightest budget (%s, %s).", amount(f.Left), scope, words(name))
	default:
		d.FitsText = "No daily, weekly, monthly, quarterly or total budget applies."
	}
	if f.Denied > 0 {
		d.FitsText += " The policy gpu_allow_list denies " + plural(f.Denied, "other GPU type") + "."
	}
	list := f.GPUs
	if limited := f.Left != "" || f.PerHour != "" || len(list) > 0 && list[0].AtOnce != nil; !limited {
		d.FitsText, list = "No budget limits what "+cmp.Or(v.Query("team"), "the organisation")+" can rent.", nil
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
	hours := func(g *operator.GPUFit) cell {
		if g.Hours == "" {
			return textCell("No limit")
		}
		n := decimal(g.Hours)
		if g.UntilReset != nil && *g.UntilReset > 0 {
			return textCell("Until the reset", g.Hours+" h")
		}
		if n >= 72 {
			return textCell(chart.Requests.Format(n)+" h", fmt.Sprintf("%.0f days", n/24))
		}
		return textCell(g.Hours + " h")
	}
	d.FitsTable = newTable(v, list, tableSpec[operator.GPUFit]{
		Name: "fits", Caption: "GPU hours that fit into the remaining budget", Whole: true,
		Columns: []column[operator.GPUFit]{
			{Title: "GPU", Cell: func(g *operator.GPUFit) cell { return textCell(g.GPU) }},
			{Title: "Lowest price", Number: true, Cell: func(g *operator.GPUFit) cell {
				return textCell(amount(g.PerHour)+" per hour",
					g.Cloud+" cloud")
			}},
			{Title: "One GPU runs for", Number: true, Cell: hours},
			{Title: "GPUs at once", Number: true, Cell: func(g *operator.GPUFit) cell {
				if n := cmp.Or(g.UntilReset, g.AtOnce); n != nil {
					return textCell(count(*n))
				}
				return textCell("No limit")
			}},
		},
		Empty: empty{
			Icon: "wallet", Title: "No limit",
			Text: "The budgets of the organisation, or of the team selected above, limit these GPU hours.",
		},
	})
}
