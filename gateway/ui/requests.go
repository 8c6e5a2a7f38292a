package ui

import (
	"cmp"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// requestsData holds the data of the Requests page.
type requestsData struct {
	decisions.List

	// Outcomes holds the counts in the page's time range. It is empty if Uncounted is set.
	Outcomes part[decisions.OutcomeCounts]
	// Uncounted reports that the list has a filter that the counts lack.
	Uncounted bool
	// Approvals maps decision IDs to pending approval requests.
	Approvals map[string]string
	// Full reports that the list reached the requested length, so there may be older entries.
	Full bool
}

func loadRequests(v *visit) (any, int, string) {
	var d requestsData
	q := v.since(v.query(decisionList))
	if q.Get("before") == "" && v.ended() {
		q.Set("before", v.period.To.UTC().Format(time.RFC3339Nano))
	}
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > mostListed {
		q.Set("limit", strconv.Itoa(mostListed))
	}
	var list part[decisions.List]
	d.Uncounted = slices.ContainsFunc([]string{"key", "operation", "policy", "resource", "own", "refused"},
		func(name string) bool { return q.Has(name) })
	together(
		func() { list = ask[decisions.List](v, decisionList, q) },
		func() {
			if !d.Uncounted {
				d.Outcomes = v.outcomes()
			}
		},
		func() { d.Approvals = v.pendingApprovals() },
	)
	d.List = list.Is
	d.Full = strconv.Itoa(len(d.Decisions)) == cmp.Or(q.Get("limit"), "50")
	return d, list.Status, list.Fault
}

// pendingApprovals maps the decision IDs of denied requests to their pending approval requests.
func (v *visit) pendingApprovals() map[string]string {
	out := make(map[string]string)
	if !v.may(approvalList) {
		return out
	}
	list := ask[approval.List](v, approvalList, nil).Is.Approvals
	for i := range list {
		if v.isPending(&list[i]) {
			out[list[i].Decision] = list[i].ID
		}
	}
	return out
}

// mostListed is the maximum number of requests on a page, regardless of its address.
const mostListed = 200

// Notice explains why requests may be missing from the list.
func (d requestsData) Notice() string {
	if d.Next == "" {
		return d.Incomplete
	}
	text, _, _ := strings.Cut(d.Incomplete, ":")
	return title(text) + "."
}

// ended reports whether the page's time range ends in the past.
func (v *visit) ended() bool {
	return v.period.Name != "" && v.period.To.Before(v.now().Add(-time.Minute))
}

// outcomes reads the request counts in the page's time range. It selects a bucket length that results in about 10 to 100 columns.
func (v *visit) outcomes() part[decisions.OutcomeCounts] {
	q := url.Values{"since": {v.period.Since()}, "until": {v.period.To.UTC().Format(time.RFC3339)}, "bucket": {v.period.Bucket()}}
	team := v.Query("team")
	switch {
	case team != "":
		q.Set("team", team)
	case v.period.To.Sub(v.period.From) <= 3*time.Hour:
		q.Set("bucket", "5m")
	}
	return ask[decisions.OutcomeCounts](v, outcomeRow, q)
}

// filterFields returns the filters of the page. The first visible fields are always shown.
func (d requestsData) filterFields(f *frame) (fields []field, visible int) {
	var keys, operations, policies, resources []string // suggestions
	for i := range d.Decisions {
		s := &d.Decisions[i]
		keys, operations, policies = append(keys, s.Key), append(operations, s.Operation), slices.Concat(policies, s.Denied, s.Warned)
		resources = append(resources, s.Resource)
	}
	outcomes := []option{{Value: "", Title: "All outcomes"}}
	for _, o := range []string{explain.OutcomeAllowed, explain.OutcomeDenied, explain.OutcomeThrottled, explain.OutcomeFailed} {
		outcomes = append(outcomes, option{Value: o, Title: title(o)})
	}
	return []field{
		{Name: "outcome", Label: "Outcome", Type: "select", Options: outcomes},
		{Name: "team", Label: "Team", Type: "select", Options: names("All teams", f.Teams(), "")},
		{Name: "key", Label: "Key", Placeholder: "Key ID", Suggest: distinct(keys)},
		{Name: "operation", Label: "Operation", Placeholder: "All operations", Suggest: distinct(operations)},
		{Name: "policy", Label: "Policy", Placeholder: "All policies", Suggest: distinct(policies)},
		{Name: "resource", Label: "Resource", Placeholder: "Resource ID", Suggest: distinct(resources)},
		{Name: "own", Label: "Stopped or changed by the gateway itself", Type: "checkbox"},
	}, 4
}

// distinct returns the different non-empty texts in order.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return present(slices.Compact(texts)...)
}

// Filters returns the form that filters the list.
func (d requestsData) Filters(f *frame) form {
	fields, _ := d.filterFields(f)
	return f.filters(fields...)
}

// Seen returns the fields that are always shown, and Hidden the other fields.
func (d requestsData) Seen(f *frame) []field {
	_, n := d.filterFields(f)
	return d.Filters(f).Fields[:n]
}

// Hidden returns the fields that are shown on demand.
func (d requestsData) Hidden(f *frame) []field {
	_, n := d.filterFields(f)
	return d.Filters(f).Fields[n:]
}

// More reports whether any field of Hidden is set.
func (d requestsData) More(f *frame) bool {
	for _, x := range d.Hidden(f) {
		if x.Value != "" {
			return true
		}
	}
	return false
}

// Chips returns the active filters.
func (d requestsData) Chips(f *frame) []chip {
	out := f.chips(d.Filters(f))
	if f.Query("refused") == "true" {
		out = append(out, chip{"Denied and throttled only", "", f.With("refused", "", "before", "")})
	}
	if f.Query("before") != "" {
		out = append(out, chip{"Older requests", "", f.With("before", "")})
	}
	return out
}

// Histogram draws the counts by outcome.
func (d requestsData) Histogram(f *frame) template.HTML {
	c := chart.Chart{
		ID: "outcomes", Title: "Requests by outcome", Unit: chart.Requests, Zone: f.zone(), Total: true, Empty: "No requests in this time range.",
		Per: map[string]string{"5m": "5 min", "hour": "hour", "day": "day"}[d.Outcomes.Is.Bucket],
	}
	if team := f.Query("team"); team != "" {
		c.Title += ", team " + team
	}
	series := []chart.Series{
		{Name: "Allowed", Class: "outcome-allowed"},
		{Name: "Denied", Class: "outcome-denied"},
		{Name: "Throttled", Class: "outcome-throttled"},
		{Name: "Failed", Class: "outcome-failed"},
	}
	for i := range d.Outcomes.Is.Counts {
		n := &d.Outcomes.Is.Counts[i]
		href := f.With("range", "", "from", n.Start.UTC().Format(time.RFC3339), "to", n.End.UTC().Format(time.RFC3339), "before", "")
		c.Buckets = append(c.Buckets, chart.Bucket{Start: n.Start, Length: n.End.Sub(n.Start), Href: href})
		for j, value := range []int64{n.Allowed, n.Denied, n.Throttled, n.Failed} {
			series[j].Values = append(series[j].Values, float64(value))
		}
	}
	if only := f.Query("outcome"); only != "" {
		c.Title = title(only) + " requests" + strings.TrimPrefix(c.Title, "Requests by outcome")
		series = slices.DeleteFunc(series, func(s chart.Series) bool { return s.Name != title(only) })
	}
	c.Series = series
	return c.HTML()
}

// Table returns the table of requests.
func (d requestsData) Table(f *frame) table {
	columns := requestColumns(f.visit)
	i := slices.IndexFunc(columns, func(c column[explain.Summary]) bool { return c.Key == "reason" })
	columns[i].Cell = func(s *explain.Summary) cell {
		c := textCell(reasonOf(s))
		if id := d.Approvals[s.DecisionID]; id != "" {
			c.Links = []button{{Title: "Review approval", Path: f.Link("approvals") + "#" + id}}
		}
		return c
	}
	spec := tableSpec[explain.Summary]{
		Name: "requests", Caption: "Requests, newest first", Columns: columns,
		Path: func(s *explain.Summary) string { return f.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Live: f.LiveAddress(), Keyed: true, Empty: d.empty(f),
	}
	switch {
	case d.Next != "":
		spec.Next = f.With("before", d.Next)
	case d.Full && len(d.Decisions) > 0:
		spec.Next = f.With("before", d.Decisions[len(d.Decisions)-1].Time.UTC().Format(time.RFC3339Nano))
	}
	return newTable(f.visit, d.Decisions, spec)
}

// requestColumns returns the columns of request lists.
func requestColumns(v *visit) []column[explain.Summary] {
	return []column[explain.Summary]{
		{Key: "time", Title: "Time", Cell: func(s *explain.Summary) cell { return v.exactCell(s.Time) }},
		{Key: "outcome", Title: "Outcome", Cell: outcomeCell},
		{Key: "operation", Title: "Operation", Cell: func(s *explain.Summary) cell {
			return textCell(operationName(s.Operation),
				dialectName(s.Dialect))
		}},
		{Key: "caller", Title: "Caller", Cell: func(s *explain.Summary) cell { return textCell(s.Key, teamName(s.Team)) }},
		{Key: "resource", Title: "Resource", Cell: func(s *explain.Summary) cell {
			if s.Resource == "" {
				return cell{}
			}
			return cell{Text: s.Resource, Code: true, Path: v.Link("resources/" + url.PathEscape(s.Resource))}
		}},
		{Key: "status", Title: "Status", Number: true, Cell: func(s *explain.Summary) cell { return textCell(number0(s.Status)) }},
		{Key: "reason", Title: "Reason", Cell: func(s *explain.Summary) cell { return textCell(reasonOf(s)) }},
		{Key: "price", Title: "Price/h", Number: true, Cell: func(s *explain.Summary) cell { return textCell(amount(s.USDPerHour)) }},
		{Key: "latency", Title: "Latency", Number: true, Cell: func(s *explain.Summary) cell { return textCell(millis(s.DurationMs)) }},
	}
}

// outcomeCell shows the outcome of a request. It marks dry runs and actions of the gateway.
func outcomeCell(s *explain.Summary) cell {
	c := statusCell(cmp.Or(s.Outcome, string(s.Verdict)))
	switch {
	case s.Own != nil:
		c.Status = &status{levelInfo, "Gateway action"}
	case s.Dry:
		c.Sub = "Dry run"
	}
	return c
}

// reasonOf explains the outcome of a request in one line.
func reasonOf(s *explain.Summary) string {
	if s.Own != nil {
		return s.Own.Did
	}
	text, _, _ := strings.Cut(readable(ruleOf(s.Reason)), " (allowed: ")
	if letters := []rune(text); len(letters) > maxShortReason {
		text = string(letters[:maxShortReason]) + "…"
	}
	return text
}

// ruleOf returns the detail of a refusal without the advice for the caller on how to request approval.
func ruleOf(detail string) string {
	rule, _, _ := strings.Cut(detail, approval.Advice)
	return rule
}

// maxShortReason is the maximum length of a reason in a list, in characters. The page of the request shows the full reason.
const maxShortReason = 160

// teamName returns the name of a team, or "" for an empty ID.
func teamName(id string) string {
	if id == "" {
		return ""
	}
	return "team " + id
}

// operationName returns the name of an operation. It also handles requests that match no operation.
func operationName(id string) string {
	if id == "unmatched" || id == "" {
		return "Unknown operation"
	}
	return id
}

// dialectName returns the name of the API that the client used, or "" for the current API.
func dialectName(dialect string) string {
	switch dialect {
	case "v1":
		return "v1 API"
	case "graphql":
		return "GraphQL API"
	case "run":
		return "Run API"
	case "chat":
		return "Chat API"
	}
	return ""
}

// number0 formats a number, or returns "" for 0.
func number0(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// millis formats a duration in milliseconds with a suitable unit, or returns "" for 0.
func millis(ms float64) string {
	switch {
	case ms == 0:
		return ""
	case ms < 0.1:
		return strconv.FormatFloat(max(1, ms*1000), 'f', 0, 64) + " µs"
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 2, 64) + " ms"
	case ms < 10_000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
}

// empty returns the empty state of the list. It mentions the filters if any are active.
func (d requestsData) empty(f *frame) empty {
	if len(d.Chips(f)) > 0 {
		return empty{
			Icon: "filter", Title: "No matching requests", Text: "No request in this time range matches the filters.",
			Next: &button{Title: "Clear filters", Path: f.Link("requests")},
		}
	}
	return empty{
		Icon: "list", Title: "No requests in this time range",
		Text: "Each request to the gateway appears here with its outcome, the reason, its price and its latency. Choose a longer time range, or send a request:",
		Code: &code{"request", sampleCall},
	}
}

// sampleCall is an example call.
const sampleCall = `curl "$TOLLGATE_URL/v2/pods" -H "Authorization: Bearer $TOLLGATE_KEY"`

// Badges returns the outcome badges that the script uses for live rows.
func (requestsData) Badges() map[string]status {
	out := make(map[string]status)
	for _, o := range []string{explain.OutcomeAllowed, explain.OutcomeDenied, explain.OutcomeThrottled, explain.OutcomeFailed} {
		out[o] = statusOf(o)
	}
	out["own"] = status{levelInfo, "Gateway action"}
	return out
}
