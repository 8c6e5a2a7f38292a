package ui

import (
	"cmp"
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
	listing

	// More holds the filters that are shown on demand. Open reports that one of them is set.
	More []field
	Open bool
	// Outcomes holds the counts in the page's time range, and Chart draws them. Both are empty if Uncounted is set.
	Outcomes part[decisions.OutcomeCounts]
	Chart    chart.Chart
	// Uncounted reports that the list has a filter that the counts do not support.
	Uncounted bool
	// Badges holds the badge of each outcome. The script of the page uses the badges for requests that it adds to the list.
	Badges map[string]status
}

func loadRequests(v *visit) (any, int, string) {
	q := v.requestRange(v.query(decisionList))
	var list part[decisions.List]
	var outcomes *part[decisions.OutcomeCounts]
	var approvals map[string]string
	uncounted := slices.ContainsFunc([]string{"key", "operation", "policy", "resource", "own", "refused"},
		func(name string) bool { return q.Has(name) })
	together(
		func() { list = ask[decisions.List](v, decisionList, q) },
		func() {
			if !uncounted {
				outcomes = new(v.outcomes())
			}
		},
		func() { approvals = v.pendingApprovals() },
	)
	return newRequestsData(v, &list.Is, outcomes, approvals), list.Status, list.Fault
}

// requestRange adds the page's time range to the parameters of a list of requests, and restricts the length of the list.
func (v *visit) requestRange(q url.Values) url.Values {
	q = v.since(q)
	if q.Get("before") == "" && v.ended() {
		q.Set("before", v.period.To.UTC().Format(time.RFC3339Nano))
	}
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n > mostListed {
		q.Set("limit", strconv.Itoa(mostListed))
	}
	return q
}

// newRequestsData returns the data of the page. approvals maps decision IDs to pending approval requests. outcomes is nil if the list has a
// filter that the counts do not support.
func newRequestsData(v *visit, list *decisions.List, outcomes *part[decisions.OutcomeCounts], approvals map[string]string) requestsData {
	const visible = 4
	d := requestsData{listing: v.filtered(requestFilters(v, list.Decisions)...), Uncounted: outcomes == nil, Badges: outcomeBadges()}
	d.Filters.Fields, d.More = d.Filters.Fields[:visible], d.Filters.Fields[visible:]
	d.Open = slices.ContainsFunc(d.More, func(x field) bool { return x.Value != "" })
	if v.Query("refused") == "true" {
		d.Chips = append(d.Chips, chip{"Denied and throttled only", "", v.With("refused", "", "before", "")})
	}
	d.olderChip(v)
	if outcomes != nil {
		d.Outcomes, d.Chart = *outcomes, outcomeChart(v, &outcomes.Is)
	}
	if list.Incomplete != "" {
		d.Notes = []note{{levelWarn, incomplete(list)}}
	}
	d.Hint = listedFor(list.KeptSeconds)
	d.table(v, list, approvals)
	d.searchOlder()
	return d
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

// incomplete explains why requests may be missing from the list.
func incomplete(list *decisions.List) string {
	text, _, _ := strings.Cut(list.Incomplete, ";") // without the advice for users of the API
	return title(text) + "."
}

// listedFor describes for how long requests are listed.
func listedFor(seconds int64) string {
	if seconds == 0 {
		return "The list contains the latest requests of this gateway only."
	}
	return "The list does not contain allowed reads that other gateways served. All other requests are listed for " +
		lastingFully(time.Duration(seconds)*time.Second) + ", unless there are too many to keep."
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

// requestFilters returns the filters of the page.
func requestFilters(v *visit, list []explain.Summary) []field {
	var keys, operations, policies, resources []string // suggestions
	for i := range list {
		s := &list[i]
		keys, operations, policies = append(keys, s.Key), append(operations, s.Operation), slices.Concat(policies, s.Denied, s.Warned)
		resources = append(resources, s.Resource)
	}
	outcomes := []option{{Value: "", Title: "All outcomes"}}
	for _, o := range []string{explain.OutcomeAllowed, explain.OutcomeDenied, explain.OutcomeThrottled, explain.OutcomeFailed} {
		outcomes = append(outcomes, option{Value: o, Title: title(o)})
	}
	return []field{
		{Name: "outcome", Label: "Outcome", Type: "select", Options: outcomes},
		{Name: "team", Label: "Team", Type: "select", Options: names("All teams", v.Teams(), "")},
		{Name: "key", Label: "Key", Placeholder: "Key ID", Suggest: distinct(keys)},
		{Name: "operation", Label: "Operation", Placeholder: "All operations", Suggest: distinct(operations)},
		{Name: "policy", Label: "Policy", Placeholder: "All policies", Suggest: distinct(policies)},
		{Name: "resource", Label: "Resource", Placeholder: "Resource ID", Suggest: distinct(resources)},
		{Name: "own", Label: "Stopped or changed by the gateway itself", Type: "checkbox"},
	}
}

// distinct returns the different non-empty texts in order.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return present(slices.Compact(texts)...)
}

// outcomeChart draws the counts by outcome.
func outcomeChart(v *visit, outcomes *decisions.OutcomeCounts) chart.Chart {
	c := chart.Chart{
		ID: "outcomes", Title: "Requests by outcome", Unit: chart.Requests, Zone: v.zone(), Total: true, Empty: "No requests in this time range.",
		Per: map[string]string{"5m": "5 min", "hour": "hour", "day": "day"}[outcomes.Bucket],
	}
	if team := v.Query("team"); team != "" {
		c.Title += ", team " + team
	}
	series := []chart.Series{
		{Name: "Allowed", Class: "outcome-allowed"},
		{Name: "Denied", Class: "outcome-denied"},
		{Name: "Throttled", Class: "outcome-throttled"},
		{Name: "Failed", Class: "outcome-failed"},
	}
	for i := range outcomes.Counts {
		n := &outcomes.Counts[i]
		href := v.With("range", "", "from", n.Start.UTC().Format(time.RFC3339), "to", n.End.UTC().Format(time.RFC3339), "before", "")
		c.Buckets = append(c.Buckets, chart.Bucket{Start: n.Start, Length: n.End.Sub(n.Start), Href: href})
		for j, value := range []int64{n.Allowed, n.Denied, n.Throttled, n.Failed} {
			series[j].Values = append(series[j].Values, float64(value))
		}
	}
	if only := v.Query("outcome"); only != "" {
		c.Title = title(only) + " requests" + strings.TrimPrefix(c.Title, "Requests by outcome")
		series = slices.DeleteFunc(series, func(s chart.Series) bool { return s.Name != title(only) })
	}
	c.Series = series
	return c
}

// table sets the table of requests.
func (d *requestsData) table(v *visit, list *decisions.List, approvals map[string]string) {
	columns := requestColumns(v)
	i := slices.IndexFunc(columns, func(c column[explain.Summary]) bool { return c.Key == "reason" })
	columns[i].Cell = func(s *explain.Summary) cell {
		c := textCell(reasonOf(s))
		if id := approvals[s.DecisionID]; id != "" {
			c.Links = []button{{Title: "Review approval", Path: v.Link("approvals") + "#" + id}}
		}
		return c
	}
	d.Table = newTable(v, list.Decisions, tableSpec[explain.Summary]{
		Name: "requests", Caption: "Requests, newest first", Columns: columns,
		Path: func(s *explain.Summary) string { return v.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Live: v.liveAddress(), Keyed: true, Empty: d.empty(v), Next: v.older("before", list.Next),
	})
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
		{Key: "status", Title: "Status", Number: true, Value: func(s *explain.Summary) any { return statusCode(s.Status) }},
		{Key: "reason", Title: "Reason", Value: func(s *explain.Summary) any { return reasonOf(s) }},
		{Key: "price", Title: "Price/h", Number: true, Value: func(s *explain.Summary) any { return dollars(s.USDPerHour) }},
		{Key: "latency", Title: "Latency, ms", Number: true, Value: func(s *explain.Summary) any { return latency(s.DurationMs) }},
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
	return map[string]string{"v1": "v1 API", "graphql": "GraphQL API", "run": "Run API", "chat": "Chat API"}[dialect]
}

// latency formats a duration in milliseconds without a unit, or returns "" for 0.
func latency(ms float64) string {
	if ms == 0 {
		return ""
	}
	return strconv.FormatFloat(max(0.01, ms), 'f', 2, 64)
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
func (d *requestsData) empty(v *visit) empty {
	if len(d.Chips) > 0 {
		return empty{
			Icon: "filter", Title: "No matching requests", Text: "No request in this time range matches the filters.",
			Next: &button{Title: "Clear filters", Path: v.Link("requests")},
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

// outcomeBadges returns the badge of each outcome.
func outcomeBadges() map[string]status {
	out := make(map[string]status)
	for _, o := range []string{explain.OutcomeAllowed, explain.OutcomeDenied, explain.OutcomeThrottled, explain.OutcomeFailed} {
		out[o] = statusOf(o)
	}
	out["own"] = status{levelInfo, "Gateway action"}
	return out
}
