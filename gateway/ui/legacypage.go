package ui

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
)

// legacyRow is the pattern of the endpoint about callers of retired APIs.
const legacyRow = "GET /admin/legacy"

// legacyPage returns the page about callers of retired APIs.
func legacyPage() *page {
	return &page{name: "legacy", title: "Legacy APIs", asks: legacyRow, group: groupTraffic, icon: "clock", load: loadLegacy}
}

// legacyData holds the data of the page about callers of retired APIs.
type legacyData struct{ legacy.List }

func loadLegacy(v *visit) (any, int, string) {
	list := ask[legacy.List](v, legacyRow, nil)
	return legacyData{list.Is}, list.Status, list.Fault
}

// Head returns the header.
func (legacyData) Head(*frame) head {
	return head{Title: "Legacy APIs", Text: "Programs that still call the v1 and GraphQL APIs, and the v2 operation to call instead."}
}

// Tiles returns a summary of the calls.
func (d legacyData) Tiles(f *frame) []tile {
	if len(d.Calls) == 0 {
		return nil
	}
	calls, last := int64(0), time.Time{}
	programs, keys := map[string]bool{}, map[string]bool{}
	for i := range d.Calls {
		c := &d.Calls[i]
		calls += c.Count
		programs[c.Key+"\x00"+c.Agent], keys[c.Key] = true, true
		if c.Last.After(last) {
			last = c.Last
		}
	}
	return []tile{
		{Label: "Programs", Value: count(int64(len(programs))), Note: "with " + plural(len(keys), "key")},
		{Label: "Calls", Value: count(calls), Note: "since " + f.Since(d.Calls)},
		{Label: "Last call", Value: f.When(last).Text(), Note: f.When(last).Exact()},
	}
}

// Since formats the time of the earliest call.
func (v *visit) Since(calls []legacy.Call) string {
	first := slices.MinFunc(calls, func(a, b legacy.Call) int { return a.First.Compare(b.First) })
	return first.First.In(v.zone()).Format("2 Jan 2006")
}

// Table lists client programs by their latest call.
func (d legacyData) Table(f *frame) table {
	list := slices.Clone(d.Calls)
	slices.SortStableFunc(list, func(a, b legacy.Call) int { return b.Last.Compare(a.Last) })
	return newTable(f.visit, list, tableSpec[legacy.Call]{
		Name: "legacy", Caption: "Programs that call retired APIs", Whole: true,
		Empty: empty{
			Icon: "check", Title: "No calls to legacy APIs",
			Text: "Programs that call v1 or GraphQL appear here with their key, and with the v2 operation to call instead.",
		},
		Columns: []column[legacy.Call]{
			{
				Key: "program", Title: "Program", Compare: byText(func(c *legacy.Call) string { return c.Agent }),
				Cell: func(c *legacy.Call) cell { return textCell(agentName(c.Agent)) },
			},
			{Key: "key", Title: "Key", Compare: byText(func(c *legacy.Call) string { return c.Key }), Cell: func(c *legacy.Call) cell {
				return linkCell(c.Key, f.Link("requests", "key", c.Key, "range", last7Days))
			}},
			{Key: "operation", Title: "Operation", Cell: func(c *legacy.Call) cell { return textCell(c.Operation, dialectName(c.Dialect)) }},
			{Key: "instead", Title: "Use instead", Cell: insteadCell},
			{
				Key: "count", Title: "Calls", Number: true, Compare: func(a, b *legacy.Call) int { return cmp.Compare(a.Count, b.Count) },
				Cell: func(c *legacy.Call) cell { return textCell(count(c.Count)) },
			},
			{
				Key: "errors", Title: "Errors", Number: true,
				Cell: func(c *legacy.Call) cell { return textCell(count(c.Statuses["4xx"] + c.Statuses["5xx"])) },
			},
			{
				Key: "last", Title: "Last call", Compare: byTime(func(c *legacy.Call) time.Time { return c.Last }),
				Cell: func(c *legacy.Call) cell { return f.whenCell(c.Last) },
			},
			{Key: "lost", Title: "Fields without a v2 equivalent", Cell: lostCell},
			{Key: "brownout", Title: "Brownout", Cell: func(c *legacy.Call) cell { return brownoutCell(f.visit, c.Refused) }},
		},
	})
}

// agentName returns the name of a program from its User-Agent header.
func agentName(agent string) string {
	if agent == "none" || agent == "" {
		return "Unknown (no User-Agent)"
	}
	return agent
}

// insteadCell shows the operation to migrate to, with further operations below it.
func insteadCell(c *legacy.Call) cell {
	if len(c.V2) == 0 {
		return textCell("No v2 equivalent")
	}
	out := codeCell(c.V2[0])
	out.Sub = strings.Join(c.V2[1:], ", ")
	return out
}

// lostCell lists the fields that are missing in v2.
func lostCell(c *legacy.Call) (out cell) {
	for _, field := range slices.Sorted(maps.Keys(c.Lost)) {
		out.Lines = append(out.Lines, field+" ("+plural(int(c.Lost[field]), "call")+")")
	}
	return out
}

// brownoutCell shows the next brownout of an API.
func brownoutCell(v *visit, b *legacy.Brownout) cell {
	switch {
	case b == nil:
		return cell{}
	case b.Now:
		c := v.whenCell(b.Until)
		c.Status = &status{levelBad, "Refused now, ends"}
		return c
	}
	return v.whenCell(b.From)
}

// BrownoutTable lists the weekly times at which requests to retired APIs are rejected.
func (d legacyData) BrownoutTable(f *frame) table {
	return newTable(f.visit, slices.Clone(d.Brownouts), tableSpec[legacy.Brownout]{
		Name: "brownouts", Caption: "Brownouts of the next seven days", Columns: []column[legacy.Brownout]{
			{Title: "API", Cell: func(b *legacy.Brownout) cell { return textCell(cmp.Or(dialectName(b.Dialect), b.Dialect)) }},
			{Title: "Status", Cell: func(b *legacy.Brownout) cell {
				if b.Now {
					return cell{Status: &status{levelBad, "Refused now"}}
				}
				return cell{Status: &status{levelInfo, "Scheduled"}}
			}},
			{Title: "From", Cell: func(b *legacy.Brownout) cell { return textCell(moment(b.From.In(f.zone()))) }},
			{Title: "To", Cell: func(b *legacy.Brownout) cell { return textCell(moment(b.Until.In(f.zone()))) }},
		},
	})
}
