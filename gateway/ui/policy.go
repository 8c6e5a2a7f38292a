package ui

import (
	"cmp"
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// policyPage holds the data of a policy's page.
type policyPage struct {
	operator.PolicyDetails

	Counts     part[decisions.PolicyCounts]
	Latest     part[decisions.List]
	Exceptions []alerts.Exception
}

// latestRequests is the number of requests that the page lists.
const latestRequests = "10"

func loadPolicy(v *visit) (any, int, string) {
	id := v.r.PathValue("id")
	d := policyPage{}
	var list part[operator.PolicyList]
	var exceptions part[alerts.ExceptionList]
	together(
		func() { list = ask[operator.PolicyList](v, policyRow, url.Values{"policy": {id}}) },
		func() {
			d.Counts = ask[decisions.PolicyCounts](v, policyCountRow, url.Values{"policy": {id}, "since": {"30d"}, "bucket": {"hour"}})
		},
		func() {
			d.Latest = ask[decisions.List](v, decisionList, url.Values{"policy": {id}, "limit": {latestRequests}})
		},
		func() { exceptions = ask[alerts.ExceptionList](v, exceptionRow, url.Values{"limit": {"1000"}}) },
	)
	switch {
	case !list.OK():
		return nil, list.Status, list.Fault
	case len(list.Is.Policies) == 0 && len(d.Counts.Is.Counts) == 0:
		return nil, http.StatusNotFound, "organisation " + v.org + " has no policy " + id
	case len(list.Is.Policies) == 0:
		d.Policy = id // the policy was in force and has counts
	default:
		d.PolicyDetails = list.Is.Policies[0]
	}
	d.Exceptions = slices.DeleteFunc(exceptions.Is.Exceptions, func(x alerts.Exception) bool { return x.Kind != "policy" || x.About != id })
	return d, 0, ""
}

// Head returns the header: the policy with its mode.
func (d policyPage) Head(f *frame) head {
	mode := modeOf(d.InForce)
	h := head{Title: d.Policy, Text: d.Title, Badge: &mode, Parents: []link{{Title: "Policies", Path: f.Link("policies")}}}
	h.Actions = append(h.Actions, button{
		Title: "View requests", Icon: "list",
		Path: f.Link("requests", "policy", d.Policy, "range", last30Days),
	})
	if f.Can(tryRow) && d.Example != "" {
		h.Actions = append(h.Actions, button{Title: "Test in playground", Icon: "flask", Path: f.Link("playground", "policies", d.Example)})
	}
	return h
}

// total returns the sum of the results in 30 days.
func (d policyPage) total() (n verdicts) {
	for _, c := range d.Counts.Is.Counts {
		n.add(c.Verdict, c.Calls)
	}
	return n
}

// Tiles returns a summary of the policy's effect.
func (d policyPage) Tiles(*frame) []tile {
	n := d.total()
	out := []tile{
		{Label: "Denied", Value: count(n.Denied), Note: "requests in 30 days"},
		{Label: "Would deny", Value: count(n.WouldDeny), Note: "in shadow mode"},
		{Label: "Warned", Value: count(n.Warned), Note: "requests that passed"},
		{Label: "Exempted", Value: count(n.Exempted), Note: "by an exception or approval"},
	}
	for i := range out {
		out[i].Fault = d.Counts.Fault
	}
	return out
}

// verdictSeries returns the verdicts that the chart of a policy shows, and their series.
func verdictSeries() (verdicts []string, series []chart.Series) {
	return []string{"denies", "would deny", "warns", "excepted"}, []chart.Series{
		{Name: "Denied", Class: "outcome-denied"},
		{Name: "Would deny", Class: "series-1"},
		{Name: "Warned", Class: "outcome-throttled"},
		{Name: "Exempted", Class: "series-other"},
	}
}

// Chart draws the results by day in the organisation's time zone.
func (d policyPage) Chart(f *frame) template.HTML {
	c := chart.Chart{
		ID: "effect", Title: "Requests by result", Unit: chart.Requests, Per: "day", Zone: f.zone(),
		Total: true, Empty: "No results.",
	}
	verdicts, series := verdictSeries()
	now := f.Now()
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	for ago := policyRetention - 1; ago >= 0; ago-- {
		day := today.AddDate(0, 0, -ago)
		href := f.Link("requests", "policy", d.Policy, "range", "", "from", day.Format(time.DateOnly), "to", day.Format(time.DateOnly))
		c.Buckets = append(c.Buckets, chart.Bucket{Start: day, Length: day.AddDate(0, 0, 1).Sub(day), Href: href})
	}
	for i := range series {
		series[i].Values = make([]float64, policyRetention)
	}
	for _, n := range d.Counts.Is.Counts {
		bucket := slices.IndexFunc(c.Buckets, func(b chart.Bucket) bool { return !n.Hour.Before(b.Start) && n.Hour.Before(b.Start.Add(b.Length)) })
		if i := slices.Index(verdicts, n.Verdict); i >= 0 && bucket >= 0 {
			series[i].Values[bucket] += float64(n.Calls)
		}
	}
	c.Series = slices.DeleteFunc(series, func(s chart.Series) bool { return s.Sum() == 0 })
	return c.HTML()
}

// Quiet reports whether the policy had no results in 30 days.
func (d policyPage) Quiet() bool { return d.total() == verdicts{} }

// teamEffect holds the effect of a policy on a team.
type teamEffect struct {
	verdicts
	Team string
}

// Teams lists the effect by team, in descending order.
func (d policyPage) Teams(f *frame) table {
	var list []teamEffect
	for _, c := range d.Counts.Is.Counts {
		i := slices.IndexFunc(list, func(e teamEffect) bool { return e.Team == c.Team })
		if i < 0 {
			i, list = len(list), append(list, teamEffect{Team: c.Team})
		}
		list[i].add(c.Verdict, c.Calls)
	}
	slices.SortStableFunc(list, func(a, b teamEffect) int { return cmp.Compare(b.Denied+b.WouldDeny, a.Denied+a.WouldDeny) })
	number := func(title string, of func(*teamEffect) int64) column[teamEffect] {
		return column[teamEffect]{Title: title, Number: true, Cell: func(e *teamEffect) cell { return textCell(count(of(e))) }}
	}
	return newTable(f.visit, list, tableSpec[teamEffect]{
		Name: "teams", Caption: "Results by team in the last 30 days", Columns: []column[teamEffect]{
			{Title: "Team", Cell: func(e *teamEffect) cell { return textCell(cmp.Or(e.Team, "No team")) }},
			number("Denied", func(e *teamEffect) int64 { return e.Denied }), number("Would deny", func(e *teamEffect) int64 { return e.WouldDeny }),
			number("Warned", func(e *teamEffect) int64 { return e.Warned }), number("Exempted", func(e *teamEffect) int64 { return e.Exempted }),
		},
		Path: func(e *teamEffect) string {
			if e.Team == "" {
				return ""
			}
			return f.Link("requests", "policy", d.Policy, "team", e.Team, "range", last30Days)
		},
	})
}

// setParam is a policy parameter and its value in an entry.
type setParam struct {
	operator.PolicyParameter
	Value any
	Set   bool
}

// entryView is a configuration entry of a policy.
type entryView struct {
	Mode    status
	Applies string
	Table   table
	// Approvable reports whether individual requests can be approved.
	Approvable bool
}

// Entries returns the configuration entries of the policy with their parameter values.
func (d policyPage) Entries(f *frame) (out []entryView) {
	for i := range d.InForce {
		e := &d.InForce[i]
		view := entryView{Mode: modeOf(d.InForce[i : i+1]), Applies: appliesTo(&e.Entry), Approvable: e.Approvable}
		var params []setParam
		for _, p := range d.Parameters {
			value, set := e.Params[p.Name]
			params = append(params, setParam{p, value, set})
		}
		view.Table = newTable(f.visit, params, tableSpec[setParam]{
			Name: "params", Caption: "Parameters of " + d.Policy, Columns: paramColumns(true),
			Empty: empty{Title: "No parameters", Text: "The policy has no parameters."},
		})
		out = append(out, view)
	}
	return out
}

// Reference lists the parameters of a policy that is not in force.
func (d policyPage) Reference(f *frame) table {
	var params []setParam
	for _, p := range d.Parameters {
		params = append(params, setParam{PolicyParameter: p})
	}
	return newTable(f.visit, params, tableSpec[setParam]{Name: "params", Caption: "Parameters of " + d.Policy, Columns: paramColumns(false)})
}

// paramColumns returns the columns of a parameter table, with or without values.
func paramColumns(values bool) (out []column[setParam]) {
	out = []column[setParam]{{Title: "Parameter", Cell: func(p *setParam) cell { return codeCell(p.Name) }}}
	if values {
		out = append(out, column[setParam]{Title: "Value", Cell: paramValue})
	}
	return append(
		out,
		column[setParam]{Title: "Default", Cell: func(p *setParam) cell { return codeCell(jsonText(p.Default)) }},
		column[setParam]{Title: "Type", Cell: func(p *setParam) cell {
			if p.Required {
				return textCell(p.Type, "required")
			}
			return textCell(p.Type)
		}},
		column[setParam]{Title: "Description", Cell: func(p *setParam) cell { return textCell(p.Description) }},
	)
}

// maxListed is the maximum number of list items in a cell.
const maxListed = 6

// paramValue shows the value of a parameter. A list has one line per item.
func paramValue(p *setParam) cell {
	if !p.Set {
		return cell{Text: "default"}
	}
	c := cell{}
	all := func(lines []string, n int) {
		if n > maxListed {
			c.Details, c.Menu = strings.Join(lines, "\n"), "Show all "+count(int64(n))
		}
	}
	switch value := p.Value.(type) {
	case []any:
		c.Lines = listed(value, maxListed)
		all(listed(value, len(value)), len(value))
		return c
	case map[string]any:
		var lines []string
		most := 0
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if list, isList := value[key].([]any); isList {
				c.Lines = append(c.Lines, key+": "+strings.Join(listed(list, maxListed), ", "))
				lines, most = append(append(lines, key+":"), listed(list, len(list))...), max(most, len(list))
				continue
			}
			c.Lines = append(c.Lines, key+": "+jsonText(value[key]))
		}
		all(lines, most)
		return c
	}
	return codeCell(jsonText(p.Value))
}

// listed formats the first items of a list, at most the given number, and the number of further items.
func listed(list []any, most int) (out []string) {
	for _, item := range list[:min(len(list), most)] {
		text, _ := item.(string)
		out = append(out, cmp.Or(text, jsonText(item)))
	}
	if more := len(list) - most; more > 0 {
		out = append(out, "and "+count(int64(more))+" more")
	}
	return out
}

// jsonText formats a value as JSON on one line. It returns "" for nil.
func jsonText(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// Requests lists the latest requests with a result of the policy.
func (d policyPage) Requests(f *frame) table {
	columns := slices.DeleteFunc(requestColumns(f.visit), func(c column[explain.Summary]) bool {
		return slices.Contains([]string{"resource", "price", "latency", "status"}, c.Key)
	})
	for i := range columns {
		if columns[i].Key == "reason" { // the page's title names the policy
			columns[i].Cell = func(s *explain.Summary) cell { return textCell(strings.TrimPrefix(reasonOf(s), d.Policy+": ")) }
		}
		columns[i].Key = ""
	}
	return newTable(f.visit, d.Latest.Is.Decisions, tableSpec[explain.Summary]{
		Name: "latest", Caption: "Latest requests with a result of " + d.Policy, Columns: columns,
		Path:  func(s *explain.Summary) string { return f.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Empty: empty{Icon: "list", Title: "No recent requests", Text: "Requests that the policy denies, warns about or changes appear here."},
	})
}

// ExceptionTable lists the exceptions to the policy.
func (d policyPage) ExceptionTable(f *frame) table {
	return exceptionTable(f, slices.Clone(d.Exceptions))
}

// ExampleCode returns an example configuration of the policy.
func (d policyPage) ExampleCode() *code { return &code{"configuration", d.Example} }
