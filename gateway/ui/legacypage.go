package ui

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
)

// legacyData holds the data of the page about callers of retired APIs.
type legacyData struct {
	listing

	Brownouts table
}

func newLegacyData(v *visit, list *legacy.List) legacyData {
	d := legacyData{Brownouts: brownoutTable(v, list.Brownouts)}
	d.Tiles, d.Table = legacyTiles(v, list.Calls), legacyTable(v, list.Calls)
	d.Text = "Programs that still call the v1 and GraphQL APIs, and the v2 operations to call instead."
	return d
}

// legacyTiles returns a summary of the calls.
func legacyTiles(v *visit, list []legacy.Call) []tile {
	if len(list) == 0 {
		return nil
	}
	calls, first, last := int64(0), list[0].First, time.Time{}
	programs, keys := map[string]bool{}, map[string]bool{}
	for i := range list {
		c := &list[i]
		calls += c.Count
		programs[c.Key+"\x00"+c.Agent], keys[c.Key] = true, true
		if c.First.Before(first) {
			first = c.First
		}
		if c.Last.After(last) {
			last = c.Last
		}
	}
	return []tile{
		{Label: "Programs", Value: count(int64(len(programs))), Note: "with " + plural(len(keys), "key")},
		{Label: "Calls", Value: count(calls), Note: "since " + first.In(v.zone()).Format("2 Jan 2006")},
		{Label: "Last call", Value: v.When(last).Text(), Note: v.When(last).Exact()},
	}
}

// legacyTable lists client programs by their latest call.
func legacyTable(v *visit, list []legacy.Call) table {
	slices.SortStableFunc(list, func(a, b legacy.Call) int { return b.Last.Compare(a.Last) })
	return newTable(v, list, tableSpec[legacy.Call]{
		Name: "legacy", Caption: "Programs that call retired APIs", Whole: true,
		Empty: empty{
			Icon: "check", Title: "No calls to legacy APIs",
			Text: "Programs that call v1 or GraphQL appear here with their key, and with the v2 operation to call instead.",
		},
		Columns: []column[legacy.Call]{
			{
				Key: "program", Title: "Program", Sort: true, Value: func(c *legacy.Call) any { return c.Agent },
				Cell: func(c *legacy.Call) cell { return textCell(agentName(c.Agent)) },
			},
			{
				Key: "key", Title: "Key", Sort: true, Value: func(c *legacy.Call) any { return c.Key },
				Cell: func(c *legacy.Call) cell {
					return linkCell(c.Key, v.Link("requests", "key", c.Key, "range", last7Days))
				},
			},
			{Key: "operation", Title: "Operation", Cell: func(c *legacy.Call) cell { return textCell(c.Operation, dialectName(c.Dialect)) }},
			{Key: "instead", Title: "Use instead", Cell: insteadCell},
			{Key: "count", Title: "Calls", Sort: true, Number: true, Value: func(c *legacy.Call) any { return c.Count }},
			{Key: "errors", Title: "Errors", Number: true, Value: func(c *legacy.Call) any { return c.Statuses["4xx"] + c.Statuses["5xx"] }},
			{Key: "last", Title: "Last call", Sort: true, Value: func(c *legacy.Call) any { return c.Last }},
			{Key: "lost", Title: "Fields without a v2 equivalent", Cell: lostCell},
			{Key: "brownout", Title: "Planned outage", Cell: func(c *legacy.Call) cell { return brownoutCell(v, c.Refused) }},
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

// brownoutTable lists the weekly times at which requests to retired APIs are rejected.
func brownoutTable(v *visit, list []legacy.Brownout) table {
	return newTable(v, list, tableSpec[legacy.Brownout]{
		Name: "brownouts", Caption: "Planned outages of the next seven days", Columns: []column[legacy.Brownout]{
			{Title: "API", Value: func(b *legacy.Brownout) any { return cmp.Or(dialectName(b.Dialect), b.Dialect) }},
			{Title: "Status", Cell: func(b *legacy.Brownout) cell {
				if b.Now {
					return cell{Status: &status{levelBad, "Refused now"}}
				}
				return cell{Status: &status{levelInfo, "Scheduled"}}
			}},
			{Title: "From", Value: func(b *legacy.Brownout) any { return moment(b.From.In(v.zone())) }},
			{Title: "To", Value: func(b *legacy.Brownout) any { return moment(b.Until.In(v.zone())) }},
		},
	})
}
