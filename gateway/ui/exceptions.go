package ui

import (
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
)

// exceptionData holds the data of the Exceptions page.
type exceptionData struct{ alerts.ExceptionList }

func loadExceptions(v *visit) (any, int, string) {
	list := ask[alerts.ExceptionList](v, exceptionRow, url.Values{"limit": {"1000"}})
	return exceptionData{list.Is}, list.Status, list.Fault
}

// Head returns the header, with a tab for each kind of exception in use.
func (d exceptionData) Head(f *frame) head {
	kind := f.Query("kind")
	h := head{Title: "Exceptions", Text: "Temporary exceptions to policies, budgets and idle handling. They expire automatically."}
	if len(d.Exceptions) == 0 {
		return h
	}
	h.Tabs = []tab{{Title: "All", Path: f.With("kind", "", "page", ""), Here: kind == "", Count: strconv.Itoa(len(d.Exceptions))}}
	for _, k := range []string{"policy", "approval", "snooze", "brownout"} {
		n := 0
		for i := range d.Exceptions {
			if d.Exceptions[i].Kind == k {
				n++
			}
		}
		if n > 0 || k == kind {
			h.Tabs = append(h.Tabs, tab{Title: exceptionKind(k), Path: f.With("kind", k, "page", ""), Here: k == kind, Count: strconv.Itoa(n)})
		}
	}
	return h
}

// exceptionKind returns the name of a kind of exception.
func exceptionKind(kind string) string {
	switch kind {
	case "policy":
		return "Policy exception"
	case "approval":
		return "Approved request"
	case "snooze":
		return "Snoozed resource"
	case "brownout":
		return "Brownout"
	}
	return title(kind)
}

// Table returns the exceptions of the selected kind.
func (d exceptionData) Table(f *frame) table {
	list := slices.Clone(d.Exceptions)
	if kind := f.Query("kind"); kind != "" {
		list = slices.DeleteFunc(list, func(x alerts.Exception) bool { return x.Kind != kind })
	}
	return exceptionTable(f, list)
}

// exceptionTable lists exceptions in order of expiry.
func exceptionTable(f *frame, list []alerts.Exception) table {
	return newTable(f.visit, list, tableSpec[alerts.Exception]{
		Name: "exceptions", Caption: "Exceptions, next to end first", Whole: true, Empty: noExceptions(),
		Columns: []column[alerts.Exception]{
			{Key: "name", Title: "Name", Cell: func(x *alerts.Exception) cell {
				return cell{Text: x.ID, Path: exceptionPath(f, x), Sub: exceptionKind(x.Kind)}
			}},
			{
				Key: "rule", Title: "Rule", Compare: byText(func(x *alerts.Exception) string { return x.About }),
				Cell: func(x *alerts.Exception) cell { return textCell(x.About) },
			},
			{Key: "for", Title: "Applies to", Cell: func(x *alerts.Exception) cell { return textCell(x.For) }},
			{
				Key: "by", Title: "Approved by", Compare: byText(func(x *alerts.Exception) string { return x.By }),
				Cell: func(x *alerts.Exception) cell { return textCell(x.By) },
			},
			{Key: "reason", Title: "Reason", Cell: func(x *alerts.Exception) cell { return textCell(x.Reason) }},
			{
				Key: "ends", Title: "Ends", Compare: byTime(func(x *alerts.Exception) time.Time { return x.Until }),
				Cell: func(x *alerts.Exception) cell { return endCell(f.visit, x.Until) },
			},
		},
	})
}

// exceptionPath returns the address of the subject's page, or "" if no page exists for the subject.
func exceptionPath(f *frame, x *alerts.Exception) string {
	switch x.Kind {
	case "policy":
		return f.Link("policies/" + url.PathEscape(x.About))
	case "approval":
		return f.Link("approvals", "view", "all") + "#" + url.PathEscape(x.ID)
	case "snooze":
		return f.Link("resources/" + url.PathEscape(x.ID))
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
		Text: "Policy exceptions, approved requests, snoozed resources and scheduled brownouts appear here with their end times. Policy exceptions are set in the configuration:",
		Code: &code{"configuration", "exceptions:\n  - id: launch-week\n    policy: gpu_count\n    teams: [research]\n    until: 2027-01-31T00:00:00Z\n    reason: launch week\n    granted_by: ada"},
	}
}
