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

// policyData holds the data of the Policies page.
type policyData struct {
	Policies []policyEffect
	// Counts holds the result counts, or the reason why they are missing.
	Counts part[decisions.PolicyCounts]
	// Held is the audit of existing resources. It is nil unless the page shows the audit.
	Held *part[explain.Audit]
}

// policyEffect holds a policy and its results in the last 30 days.
type policyEffect struct {
	operator.PolicyDetails
	verdicts

	// Unknown reports that the results are unavailable.
	Unknown bool
	// Days holds the number of requests per day that were denied or would have been denied, oldest first.
	Days [policyRetention]float64
}

// verdicts counts requests by verdict of a policy.
type verdicts struct{ Denied, WouldDeny, Warned, Exempted, Changed int64 }

// add adds a number of requests with a verdict of the API.
func (n *verdicts) add(verdict string, calls int64) {
	switch verdict {
	case "denies":
		n.Denied += calls
	case "would deny":
		n.WouldDeny += calls
	case "warns":
		n.Warned += calls
	case "excepted":
		n.Exempted += calls
	case "changes":
		n.Changed += calls
	}
}

func loadPolicies(v *visit) (any, int, string) {
	var list part[operator.PolicyList]
	var d policyData
	if v.r.FormValue("held") != "" {
		held := ask[explain.Audit](v, auditResources, nil)
		d.Held = &held
		return d, held.Status, held.Fault
	}
	together(
		func() { list = ask[operator.PolicyList](v, policyRow, nil) },
		func() {
			d.Counts = ask[decisions.PolicyCounts](v, policyCountRow, url.Values{"since": {"30d"}, "bucket": {"hour"}})
		},
	)
	d.Policies = effects(list.Is.Policies, d.Counts, v.now())
	return d, list.Status, list.Fault
}

// effects returns the results of each policy. Policies that are no longer in force come last.
func effects(list []operator.PolicyDetails, counts part[decisions.PolicyCounts], now time.Time) (out []policyEffect) {
	for i := range list {
		out = append(out, policyEffect{PolicyDetails: list[i], Unknown: !counts.OK()})
	}
	for _, c := range counts.Is.Counts {
		i := slices.IndexFunc(out, func(e policyEffect) bool { return e.Policy == c.Policy })
		if i < 0 {
			i, out = len(out), append(out, policyEffect{PolicyDetails: operator.PolicyDetails{Policy: c.Policy}})
		}
		out[i].add(c.Verdict, c.Calls)
		if ago := int(now.Sub(c.Hour) / (24 * time.Hour)); (c.Verdict == "denies" || c.Verdict == "would deny") &&
			ago >= 0 && ago < policyRetention {
			out[i].Days[policyRetention-1-ago] += float64(c.Calls)
		}
	}
	return out
}

// Head returns the header.
func (d policyData) Head(f *frame) head {
	h := head{Title: "Policies", Text: "Rules that requests must meet, and their effect in the last 30 days.", Tabs: []tab{
		{Title: "Policies", Path: f.With("held", ""), Here: d.Held == nil},
		{Title: "Existing resources", Path: f.With("held", "1"), Here: d.Held != nil},
	}}
	if d.Held != nil {
		h.Text = "Resources that the policies in force would deny or warn about if they were created now. Read from the platform."
	}
	if f.Can(tryRow) {
		h.Actions = []button{{Title: "Open playground", Icon: "flask", Path: f.Link("playground")}}
	}
	return h
}

// Table returns the table of policies.
func (d policyData) Table(f *frame) table {
	number := func(key, heading string, of func(*policyEffect) int64) column[policyEffect] {
		return column[policyEffect]{
			Key: key, Title: heading, Number: true, Compare: func(a, b *policyEffect) int { return cmp.Compare(of(a), of(b)) },
			Cell: func(e *policyEffect) cell {
				if e.Unknown {
					return textCell("unknown")
				}
				return textCell(count(of(e)))
			},
		}
	}
	changed := number("changed", "Changed", func(e *policyEffect) int64 { return e.Changed })
	changed.Off = true
	return newTable(f.visit, slices.Clone(d.Policies), tableSpec[policyEffect]{
		Name: "policies", Caption: "Policies with their results in the last 30 days", Whole: true, Empty: noPolicies(f),
		Path:  func(e *policyEffect) string { return f.Link("policies/" + url.PathEscape(e.Policy)) },
		Muted: func(e *policyEffect) bool { return len(e.InForce) == 0 },
		Columns: []column[policyEffect]{
			{
				Key: "policy", Title: "Policy", Compare: byText(func(e *policyEffect) string { return e.Policy }),
				Cell: func(e *policyEffect) cell { return textCell(e.Policy, differing(e.Title, e.Policy)...) },
			},
			{Key: "mode", Title: "Mode", Cell: modeCell},
			{Key: "for", Title: "Applies to", Cell: func(e *policyEffect) cell { return appliesCell(e.InForce) }},
			number("denied", "Denied", func(e *policyEffect) int64 { return e.Denied }),
			number("would", "Would deny", func(e *policyEffect) int64 { return e.WouldDeny }),
			number("warned", "Warned", func(e *policyEffect) int64 { return e.Warned }),
			number("exempted", "Exempted", func(e *policyEffect) int64 { return e.Exempted }),
			changed,
			{Key: "trend", Title: "Denied per day", Cell: func(e *policyEffect) cell { return trendCell(e) }},
		},
	})
}

// differing returns the readable title of a policy, or none if it equals the name.
func differing(heading, name string) []string {
	if strings.EqualFold(heading, words(name)) {
		return nil
	}
	return present(strings.ReplaceAll(heading, " - ", ": "))
}

// noPolicies returns the empty state of the list.
func noPolicies(f *frame) empty {
	e := empty{
		Icon: "shield", Title: "No policy is in force",
		Text: "Policies of the configuration appear here with the requests that they deny. Add one to the organisation:",
		Code: &code{"configuration", "policies:\n  - policy: gpu_count\n    mode: shadow # counts what it would deny, and denies nothing\n    params: {max_per_pod: 2}"},
	}
	if f.Can(tryRow) {
		e.Next = &button{Title: "Test a policy in the playground", Path: f.Link("playground")}
	}
	return e
}

// trendCell draws the denials of 30 days. It is empty if the policy denied no requests.
func trendCell(e *policyEffect) cell {
	if e.Denied+e.WouldDeny == 0 {
		return cell{}
	}
	return cell{Spark: newSpark(e.Days[:], "Requests denied or that would be denied, by day")}
}

// modeCell shows the modes of a policy.
func modeCell(e *policyEffect) cell {
	s := modeOf(e.InForce)
	return cell{Status: &s}
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

// HeldTable lists existing resources with the results of policies.
func (d policyData) HeldTable(f *frame) table {
	list := slices.DeleteFunc(slices.Clone(d.Held.Is.Resources),
		func(s explain.AuditedResource) bool { return s.Verdict == explain.Allowed && len(s.Policies) == 0 })
	none := empty{
		Icon: "server", Title: "No resources",
		Text: "Pods, endpoints and volumes of the organisation appear here with the policies that they violate.",
	}
	if n := len(d.Held.Is.Resources); n > 0 {
		none = empty{
			Icon: "check", Title: "No violations",
			Text: "All existing resources meet the policies in force: " + plural(n, "resource") + " checked.",
		}
	}
	return newTable(f.visit, list, tableSpec[explain.AuditedResource]{
		Name: "held", Caption: "Existing resources and the results of policies", Whole: true,
		Empty: none,
		Path:  func(s *explain.AuditedResource) string { return f.Link("resources/" + url.PathEscape(s.ID)) },
		Columns: []column[explain.AuditedResource]{
			{Key: "resource", Title: "Resource", Cell: func(s *explain.AuditedResource) cell {
				return textCell(cmp.Or(s.Name, s.ID), s.Kind,
					s.ID)
			}},
			{
				Key: "owner", Title: "Owner", Compare: byText(func(s *explain.AuditedResource) string { return s.Team }),
				Cell: func(s *explain.AuditedResource) cell { return textCell(s.Team, "key "+s.Key) },
			},
			{
				Key: "cost", Title: "Per month", Number: true, Compare: byAmount(func(s *explain.AuditedResource) string { return s.USDPerMonth }),
				Cell: func(s *explain.AuditedResource) cell { return textCell(amount(s.USDPerMonth)) },
			},
			{
				Key: "result", Title: "Result", Compare: byText(func(s *explain.AuditedResource) string { return string(s.Verdict) }),
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
