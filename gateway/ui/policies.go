package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// policyEffect holds a policy and its results in the last 30 days.
type policyEffect struct {
	operator.PolicyDetails

	// Calls is the number of requests by verdict of the API. Unknown reports that the results are unavailable.
	Calls   map[string]int64
	Unknown bool
	// Days holds the number of requests per day that were denied or would have been denied, oldest first; see lastDays.
	Days [policyRetention]float64
}

// verdictKinds lists the verdicts whose requests the pages count: the verdict of the API, the key and title of its column, the note of its
// tile, and the class of its series in a chart.
//
//nolint:gochecknoglobals // read only
var verdictKinds = []struct{ verdict, key, title, note, class string }{
	{"denies", "denied", "Denied", "requests in 30 days", "outcome-denied"},
	{"would deny", "would", "Would deny", "in shadow mode", "series-1"},
	{"warns", "warned", "Warned", "requests that passed", "outcome-throttled"},
	{"excepted", "exempted", "Exempted", "by an exception or approval", "series-other"},
}

func loadPolicies(v *visit) (any, int, string) {
	if v.r.FormValue("held") != "" {
		held := ask[explain.Audit](v, auditResources, nil)
		return heldListing(v, &held.Is), held.Status, held.Fault
	}
	var list part[operator.PolicyList]
	var counts part[decisions.PolicyCounts]
	together(
		func() { list = ask[operator.PolicyList](v, policyRow, nil) },
		func() {
			counts = ask[decisions.PolicyCounts](v, policyCountRow, url.Values{"since": {"30d"}, "bucket": {"hour"}})
		},
	)
	return policyListing(v, list.Is.Policies, counts), list.Status, list.Fault
}

// lastDays returns the starts of the last 30 calendar days in the zone of now, oldest first, and the end of today.
func lastDays(now time.Time) (days [policyRetention + 1]time.Time) {
	for i := range days {
		days[i] = time.Date(now.Year(), now.Month(), now.Day()+1+i-policyRetention, 0, 0, 0, 0, now.Location())
	}
	return days
}

// dayIndex returns the index of the day that contains a time in the result of lastDays, or -1.
func dayIndex(days *[policyRetention + 1]time.Time, at time.Time) int {
	return slices.IndexFunc(days[:policyRetention], func(start time.Time) bool { return !at.Before(start) && at.Before(start.AddDate(0, 0, 1)) })
}

// effects returns the results of each policy, by day in the zone of now. Policies that are no longer in force come last.
func effects(list []operator.PolicyDetails, counts part[decisions.PolicyCounts], now time.Time) (out []policyEffect) {
	for i := range list {
		out = append(out, policyEffect{PolicyDetails: list[i], Calls: make(map[string]int64), Unknown: !counts.OK()})
	}
	days := lastDays(now)
	for _, c := range counts.Is.Counts {
		i := slices.IndexFunc(out, func(e policyEffect) bool { return e.Policy == c.Policy })
		if i < 0 {
			i, out = len(out), append(out, policyEffect{PolicyDetails: operator.PolicyDetails{Policy: c.Policy}, Calls: make(map[string]int64)})
		}
		out[i].Calls[c.Verdict] += c.Calls
		if day := dayIndex(&days, c.Hour); day >= 0 && (c.Verdict == "denies" || c.Verdict == "would deny") {
			out[i].Days[day] += float64(c.Calls)
		}
	}
	return out
}

// policyHead returns the header, with tabs for policies and for existing resources.
func policyHead(v *visit, text string, held bool) head {
	h := head{Title: "Policies", Text: text, Tabs: []tab{
		{Title: "Policies", Path: v.With("held", ""), Here: !held},
		{Title: "Existing resources", Path: v.With("held", "1"), Here: held},
	}}
	if v.may(tryRow) {
		h.Actions = []button{{Title: "Open playground", Icon: "flask", Path: v.Link("playground")}}
	}
	return h
}

// policyListing returns the page that lists policies.
func policyListing(v *visit, list []operator.PolicyDetails, counts part[decisions.PolicyCounts]) listing {
	l := listing{
		head:  policyHead(v, "Rules that requests must meet, and their effect in the last 30 days.", false),
		Table: policyTable(v, effects(list, counts, v.Now())),
	}
	if !counts.OK() {
		l.Notes = []note{{levelWarn, counts.Fault}}
	}
	return l
}

// policyTable lists policies with their results.
func policyTable(v *visit, list []policyEffect) table {
	number := func(key, heading, verdict string) column[policyEffect] {
		return column[policyEffect]{
			Key: key, Title: heading, Sort: true, Number: true,
			Value: func(e *policyEffect) any {
				if e.Unknown {
					return "unknown"
				}
				return e.Calls[verdict]
			},
		}
	}
	columns := []column[policyEffect]{
		{
			Key: "policy", Title: "Policy", Sort: true, Value: func(e *policyEffect) any { return e.Policy },
			Cell: func(e *policyEffect) cell { return textCell(e.Policy, differing(e.Title, e.Policy)...) },
		},
		{Key: "mode", Title: "Mode", Cell: func(e *policyEffect) cell { return cell{Status: new(modeOf(e.InForce))} }},
		{Key: "for", Title: "Applies to", Cell: func(e *policyEffect) cell { return appliesCell(e.InForce) }},
	}
	for _, k := range verdictKinds {
		columns = append(columns, number(k.key, k.title, k.verdict))
	}
	changed := number("changed", "Changed", "changes")
	changed.Off = true
	columns = append(columns, changed, column[policyEffect]{Key: "trend", Title: "Denied per day", Cell: trendCell})
	return newTable(v, list, tableSpec[policyEffect]{
		Name: "policies", Caption: "Policies with their results in the last 30 days", Whole: true, Empty: noPolicies(v), Columns: columns,
		Path:  func(e *policyEffect) string { return v.Link("policies/" + url.PathEscape(e.Policy)) },
		Muted: func(e *policyEffect) bool { return len(e.InForce) == 0 },
	})
}

// differing returns the readable title of a policy, or nil if the title equals the name.
func differing(heading, name string) []string {
	if strings.EqualFold(heading, words(name)) {
		return nil
	}
	return present(strings.ReplaceAll(heading, " - ", ": "))
}

// noPolicies returns the empty state of the list.
func noPolicies(v *visit) empty {
	e := empty{
		Icon: "shield", Title: "No policy is in force",
		Text: "Policies in the configuration appear here with the requests that they deny. Add a policy to the organisation:",
		Code: &code{"configuration", "policies:\n  - policy: gpu_count\n    mode: shadow # counts what it would deny, and denies nothing\n    params: {max_per_pod: 2}"},
	}
	if v.may(tryRow) {
		e.Next = &button{Title: "Test a policy in the playground", Path: v.Link("playground")}
	}
	return e
}

// trendCell draws the denials of 30 days. It is empty if the policy denied no requests.
func trendCell(e *policyEffect) cell {
	if e.Calls["denies"]+e.Calls["would deny"] == 0 {
		return cell{}
	}
	return cell{Spark: newSpark(e.Days[:], "Requests denied or that would be denied, by day")}
}

// modeOf returns the strictest mode of a policy's entries as a status.
func modeOf(entries []operator.PolicyEntry) status {
	has := func(mode string) bool {
		return slices.ContainsFunc(entries, func(e operator.PolicyEntry) bool { return e.Mode == mode })
	}
	switch {
	case has("enforce"):
		return status{levelGood, "Enforced"}
	case has("warn"):
		return status{levelWarn, "Warns"}
	case has("shadow"):
		return status{levelInfo, "Shadow"}
	}
	return status{levelNeutral, "Not in force"}
}

// appliesCell shows the scope of each entry of a policy on its own line.
func appliesCell(entries []operator.PolicyEntry) (c cell) {
	for i := range entries {
		line := appliesTo(&entries[i].Entry)
		if len(entries) > 1 {
			line = entries[i].Mode + ": " + line
		}
		c.Lines = append(c.Lines, upper(line))
	}
	return c
}

// appliesTo describes the scope of an entry.
func appliesTo(e *adminapi.Entry) string {
	var parts []string
	add := func(words string, names []string) {
		if len(names) > 0 {
			parts = append(parts, words+" "+strings.Join(names, ", "))
		}
	}
	add("team", e.Teams)
	add("role", e.Roles)
	if len(parts) == 0 {
		parts = append(parts, "everyone")
	}
	add("except team", e.ExceptTeams)
	add("except role", e.ExceptRoles)
	return strings.Join(parts, ", ")
}

// heldListing returns the page that lists existing resources with the results of policies.
func heldListing(v *visit, audit *explain.Audit) listing {
	text := "Resources that the policies in force would deny or warn about if they were created now. Read from the platform."
	l := listing{head: policyHead(v, text, true), Table: heldTable(v, audit.Resources)}
	if audit.Ownerless != "" {
		l.Notes = []note{{levelWarn, audit.Ownerless}}
	}
	return l
}

// heldTable lists the resources with a result of a policy.
func heldTable(v *visit, all []explain.AuditedResource) table {
	list := slices.DeleteFunc(slices.Clone(all),
		func(s explain.AuditedResource) bool { return s.Verdict == explain.Allowed && len(s.Policies) == 0 })
	none := empty{
		Icon: "server", Title: "No resources",
		Text: "Pods, endpoints and volumes of the organisation appear here with the policies that they violate.",
	}
	if n := len(all); n > 0 {
		none = empty{
			Icon: "check", Title: "No violations",
			Text: "All existing resources meet the policies in force: " + plural(n, "resource") + " checked.",
		}
	}
	return newTable(v, list, tableSpec[explain.AuditedResource]{
		Name: "held", Caption: "Existing resources and the results of policies", Whole: true,
		Empty: none,
		Path:  func(s *explain.AuditedResource) string { return v.Link("resources/" + url.PathEscape(s.ID)) },
		Columns: []column[explain.AuditedResource]{
			{Key: "resource", Title: "Resource", Cell: func(s *explain.AuditedResource) cell {
				return textCell(cmp.Or(s.Name, s.ID), s.Kind, s.ID)
			}},
			{
				Key: "owner", Title: "Owner", Sort: true, Value: func(s *explain.AuditedResource) any { return s.Team },
				Cell: func(s *explain.AuditedResource) cell { return textCell(s.Team, "key "+s.Key) },
			},
			{
				Key: "cost", Title: "Per month", Sort: true, Number: true,
				Value: func(s *explain.AuditedResource) any { return dollars(s.USDPerMonth) },
			},
			{
				Key: "result", Title: "Result", Sort: true, Value: func(s *explain.AuditedResource) any { return string(s.Verdict) },
				Cell: func(s *explain.AuditedResource) cell { return statusCell(string(s.Verdict)) },
			},
			{Key: "policies", Title: "Policies", Cell: heldPolicies},
		},
	})
}

// heldPolicies lists the results of policies for a resource.
func heldPolicies(s *explain.AuditedResource) cell {
	c := textCell(s.Reason)
	for _, p := range s.Policies {
		c.Lines = append(c.Lines, strings.TrimSuffix(p.Policy+" "+p.Verdict+": "+p.Message, ": "))
	}
	return c
}
