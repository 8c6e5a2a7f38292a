package ui

import (
	"cmp"
	"encoding/json"
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
	head

	Policy operator.PolicyDetails
	// Tiles, Chart and Teams show the results of the policy in the last 30 days. Chart is nil if there are none or they are unavailable.
	Tiles []tile
	Chart *chart.Chart
	Teams table
	// Entries lists the entries in force. Without any, Reference lists the parameters of the policy.
	Entries    []entryView
	Reference  table
	Exceptions table
	// Latest holds the latest requests with a result of the policy, and Requests lists them.
	Latest   part[decisions.List]
	Requests table
	// Code shows the entries in force, or an example for a policy that is not in force. It is nil if there is neither. CodeTitle is its title.
	Code      *code
	CodeTitle string
}

// latestRequests is the number of requests that the page lists.
const latestRequests = "10"

func loadPolicy(v *visit) (any, int, string) {
	id := v.r.PathValue("id")
	var list part[operator.PolicyList]
	var counts part[decisions.PolicyCounts]
	var latest part[decisions.List]
	var exceptions part[alerts.ExceptionList]
	together(
		func() { list = ask[operator.PolicyList](v, policyRow, url.Values{"policy": {id}}) },
		func() {
			counts = ask[decisions.PolicyCounts](v, policyCountRow, url.Values{"policy": {id}, "since": {"30d"}, "bucket": {"hour"}})
		},
		func() {
			latest = ask[decisions.List](v, decisionList, url.Values{"policy": {id}, "limit": {latestRequests}})
		},
		func() { exceptions = ask[alerts.ExceptionList](v, exceptionRow, url.Values{"limit": {"1000"}}) },
	)
	p := operator.PolicyDetails{Policy: id} // without details, the policy was in force and has counts
	switch {
	case !list.OK():
		return nil, list.Status, list.Fault
	case len(list.Is.Policies) > 0:
		p = list.Is.Policies[0]
	case len(counts.Is.Counts) == 0:
		return nil, http.StatusNotFound, "organisation " + v.org + " has no policy " + id
	}
	lifted := slices.DeleteFunc(exceptions.Is.Exceptions, func(x alerts.Exception) bool { return x.Kind != "policy" || x.About != id })
	return newPolicyPage(v, &p, counts, latest, lifted), 0, ""
}

func newPolicyPage(
	v *visit, p *operator.PolicyDetails, counts part[decisions.PolicyCounts], latest part[decisions.List], exceptions []alerts.Exception,
) policyPage {
	d := policyPage{
		Policy: *p, Entries: entryViews(v, p), Reference: parameterReference(v, p), Exceptions: exceptionTable(v, exceptions),
		Latest: latest, Requests: latestTable(v, p.Policy, latest.Is.Decisions), CodeTitle: "Example, not in force",
	}
	if p.Configuration != "" {
		d.CodeTitle = "Configuration in force"
	}
	if text := cmp.Or(p.Configuration, p.Example); text != "" {
		d.Code = &code{"configuration", text}
	}
	d.results(v, counts)
	d.head = head{Title: p.Policy, Text: p.Title, Badge: new(modeOf(p.InForce)), Parents: v.parents("Policies", "policies")}
	d.Actions = append(d.Actions, button{
		Title: "View requests", Icon: "list",
		Path: v.Link("requests", "policy", p.Policy, "range", last30Days),
	})
	if draft := d.draft(); v.may(tryRow) && draft != "" {
		d.Actions = append(d.Actions, button{Title: "Test in playground", Icon: "flask", Path: v.Link("playground", "draft", draft)})
	}
	return d
}

// results sets the parts of the page that show the results of the policy.
func (d *policyPage) results(v *visit, counts part[decisions.PolicyCounts]) {
	calls := make(map[string]int64)
	for _, c := range counts.Is.Counts {
		calls[c.Verdict] += c.Calls
	}
	known := calls["changes"]
	for _, k := range verdictKinds {
		d.Tiles = append(d.Tiles, tile{Label: k.title, Value: count(calls[k.verdict]), Note: k.note, Fault: counts.Fault})
		known += calls[k.verdict]
	}
	if counts.OK() && known > 0 {
		d.Chart, d.Teams = new(resultChart(v, d.Policy.Policy, counts.Is.Counts)), teamEffects(v, d.Policy.Policy, counts.Is.Counts)
	}
}

// resultChart draws the results of a policy by day in the organisation's time zone.
func resultChart(v *visit, policy string, counts []decisions.PolicyCount) chart.Chart {
	c := chart.Chart{
		ID: "effect", Title: "Requests by result", Unit: chart.Requests, Per: "day", Zone: v.zone(),
		Total: true, Empty: "No results.",
	}
	days := lastDays(v.Now())
	for i, day := range days[:policyRetention] {
		href := v.Link("requests", "policy", policy, "range", "", "from", day.Format(time.DateOnly), "to", day.Format(time.DateOnly))
		c.Buckets = append(c.Buckets, chart.Bucket{Start: day, Length: days[i+1].Sub(day), Href: href})
	}
	for _, k := range verdictKinds {
		s := chart.Series{Name: k.title, Class: k.class, Values: make([]float64, policyRetention)}
		for _, n := range counts {
			if day := dayIndex(&days, n.Hour); n.Verdict == k.verdict && day >= 0 {
				s.Values[day] += float64(n.Calls)
			}
		}
		if s.Sum() != 0 {
			c.Series = append(c.Series, s)
		}
	}
	return c
}

// teamEffect holds the effect of a policy on a team.
type teamEffect struct {
	Team string
	// Calls is the number of requests by verdict of the API.
	Calls map[string]int64
}

// teamEffects lists the effect of a policy by team, in descending order.
func teamEffects(v *visit, policy string, counts []decisions.PolicyCount) table {
	var list []teamEffect
	for _, c := range counts {
		i := slices.IndexFunc(list, func(e teamEffect) bool { return e.Team == c.Team })
		if i < 0 {
			i, list = len(list), append(list, teamEffect{c.Team, make(map[string]int64)})
		}
		list[i].Calls[c.Verdict] += c.Calls
	}
	denied := func(e *teamEffect) int64 { return e.Calls["denies"] + e.Calls["would deny"] }
	slices.SortStableFunc(list, func(a, b teamEffect) int { return cmp.Compare(denied(&b), denied(&a)) })
	columns := []column[teamEffect]{{Title: "Team", Value: func(e *teamEffect) any { return cmp.Or(e.Team, "No team") }}}
	for _, k := range verdictKinds {
		columns = append(columns, column[teamEffect]{Title: k.title, Number: true, Value: func(e *teamEffect) any { return e.Calls[k.verdict] }})
	}
	return newTable(v, list, tableSpec[teamEffect]{
		Name: "teams", Caption: "Results by team in the last 30 days", Columns: columns,
		Path: func(e *teamEffect) string {
			if e.Team == "" {
				return ""
			}
			return v.Link("requests", "policy", policy, "team", e.Team, "range", last30Days)
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

// entryViews returns the configuration entries of a policy with their parameter values.
func entryViews(v *visit, p *operator.PolicyDetails) (out []entryView) {
	for i := range p.InForce {
		e := &p.InForce[i]
		view := entryView{Mode: modeOf(p.InForce[i : i+1]), Applies: appliesTo(&e.Entry), Approvable: e.Approvable}
		var params []setParam
		for _, parameter := range p.Parameters {
			value, set := e.Params[parameter.Name]
			params = append(params, setParam{parameter, value, set})
		}
		view.Table = newTable(v, params, tableSpec[setParam]{
			Name: "params", Caption: "Parameters of " + p.Policy, Columns: paramColumns(true),
			Empty: empty{Title: "No parameters", Text: "The policy has no parameters."},
		})
		out = append(out, view)
	}
	return out
}

// parameterReference lists the parameters of a policy without values.
func parameterReference(v *visit, p *operator.PolicyDetails) table {
	var params []setParam
	for _, parameter := range p.Parameters {
		params = append(params, setParam{PolicyParameter: parameter})
	}
	return newTable(v, params, tableSpec[setParam]{Name: "params", Caption: "Parameters of " + p.Policy, Columns: paramColumns(false)})
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

// listed formats at most limit items of a list, and the number of the remaining items.
func listed(list []any, limit int) (out []string) {
	for _, item := range list[:min(len(list), limit)] {
		text, _ := item.(string)
		out = append(out, cmp.Or(text, jsonText(item)))
	}
	if more := len(list) - limit; more > 0 {
		out = append(out, "and "+count(int64(more))+" more")
	}
	return out
}

// jsonText formats a value as JSON on one line. It returns "" for nil.
func jsonText(v any) string {
	if v == nil {
		return ""
	}
	text, _ := json.Marshal(v) // parameters are JSON values
	return string(text)
}

// latestTable lists the latest requests with a result of a policy.
func latestTable(v *visit, policy string, list []explain.Summary) table {
	columns := slices.DeleteFunc(requestColumns(v), func(c column[explain.Summary]) bool {
		return slices.Contains([]string{"resource", "price", "latency", "status"}, c.Key)
	})
	for i := range columns {
		if columns[i].Key == "reason" { // the page's title names the policy
			columns[i].Cell = func(s *explain.Summary) cell { return textCell(strings.TrimPrefix(reasonOf(s), policy+": ")) }
		}
		columns[i].Key = ""
	}
	return newTable(v, list, tableSpec[explain.Summary]{
		Name: "latest", Caption: "Latest requests with a result of " + policy, Columns: columns,
		Path:  func(s *explain.Summary) string { return v.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Empty: empty{Icon: "list", Title: "No recent requests", Text: "Requests that the policy denies, warns about or changes appear here."},
	})
}

// draft returns the address parameter of a playground that tests the policy with Code. It returns "" if Code is nil or too long.
func (d *policyPage) draft() string {
	if d.Code == nil {
		return ""
	}
	p := playground{Draft: operator.Draft{Policies: d.Code.Text}}
	if draft := p.pack(); len(draft) <= maxAddress {
		return draft
	}
	return ""
}
