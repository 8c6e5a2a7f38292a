package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
)

func loadExceptions(v *visit) (any, int, string) {
	list := ask[alerts.ExceptionList](v, exceptionRow, url.Values{"limit": {"1000"}})
	return exceptionList(v, list.Is.Exceptions), list.Status, list.Fault
}

// exceptionList returns the page that lists exceptions, with a tab for each kind in use.
func exceptionList(v *visit, list []alerts.Exception) (l listing) {
	kind := v.Query("kind")
	l.Text = "Temporary exceptions to policies, to budgets and to the handling of idle resources. They expire automatically."
	counts := make(map[string]int)
	for i := range list {
		counts[list[i].Kind]++
	}
	if len(list) > 0 {
		l.Tabs = []tab{{Title: "All", Path: v.With("kind", "", "page", ""), Here: kind == "", Count: strconv.Itoa(len(list))}}
		for _, k := range []string{"policy", "approval", "snooze", "brownout"} {
			if n := counts[k]; n > 0 || k == kind {
				l.Tabs = append(l.Tabs, tab{Title: exceptionKind(k), Path: v.With("kind", k, "page", ""), Here: k == kind, Count: strconv.Itoa(n)})
			}
		}
	}
	l.Table = exceptionTable(v, slices.DeleteFunc(list, func(x alerts.Exception) bool { return kind != "" && x.Kind != kind }))
	return l
}

// exceptionKind returns the name of a kind of exception.
func exceptionKind(kind string) string {
	return cmp.Or(map[string]string{
		"policy": "Policy exception", "approval": "Approved request", "snooze": "Snoozed resource", "brownout": "Planned outage",
	}[kind], title(kind))
}

// exceptionTable lists exceptions in order of expiry.
func exceptionTable(v *visit, list []alerts.Exception) table {
	return newTable(v, list, tableSpec[alerts.Exception]{
		Name: "exceptions", Caption: "Exceptions, the first to expire at the top", Whole: true, Order: "ends", Empty: noExceptions(),
		Columns: []column[alerts.Exception]{
			{Key: "name", Title: "Name", Cell: func(x *alerts.Exception) cell {
				return cell{Text: x.ID, Path: exceptionPath(v, x), Sub: exceptionKind(x.Kind)}
			}},
			{Key: "rule", Title: "Rule", Sort: true, Value: func(x *alerts.Exception) any { return x.About }},
			{Key: "for", Title: "Applies to", Value: func(x *alerts.Exception) any { return x.For }},
			{Key: "by", Title: "Approved by", Sort: true, Value: func(x *alerts.Exception) any { return x.By }},
			{Key: "reason", Title: "Reason", Value: func(x *alerts.Exception) any { return x.Reason }},
			{
				Key: "ends", Title: "Ends", Sort: true, Value: func(x *alerts.Exception) any { return x.Until },
				Cell: func(x *alerts.Exception) cell { return endCell(v, x.Until) },
			},
		},
	})
}

// exceptionPath returns the address of the subject's page, or "" if no page exists for the subject.
func exceptionPath(v *visit, x *alerts.Exception) string {
	switch x.Kind {
	case "policy":
		return v.Link("policies/" + url.PathEscape(x.About))
	case "approval":
		return approvalPath(v, x.ID)
	case "snooze":
		return v.Link("resources/" + url.PathEscape(x.ID))
	}
	return ""
}

// endCell shows an expiry time, with a warning during the last hour.
func endCell(v *visit, until time.Time) cell {
	c := v.whenCell(until)
	if left := until.Sub(v.now()); left > 0 && left < time.Hour {
		c.Status = &status{levelWarn, "Ends soon"}
	}
	return c
}

// noExceptions returns the empty state of the page.
func noExceptions() empty {
	return empty{
		Icon: "hourglass", Title: "No active exceptions",
		Text: "Policy exceptions, approved requests, snoozed resources and planned outages appear here with their end times. Policy exceptions are set in the configuration:",
		Code: &code{"configuration", "exceptions:\n  - id: launch-week\n    policy: gpu_count\n    teams: [research]\n    until: 2027-01-31T00:00:00Z\n    reason: launch week\n    granted_by: ada"},
	}
}
