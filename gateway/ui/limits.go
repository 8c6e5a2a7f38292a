package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// limitData holds the data of the Rate limits page.
type limitData struct {
	listing

	// Since is the start of the time in which throttled requests are counted.
	Since time.Time
}

// newLimitData returns the data of the page, with tabs for windows in use and for all windows.
func newLimitData(v *visit, list *operator.LimitList) limitData {
	shown := slices.DeleteFunc(slices.Clone(list.Windows), func(w operator.Window) bool { return !inUse(&w) })
	used, all := len(shown), v.Query("view") == "all"
	if all {
		shown = slices.Clone(list.Windows)
	}
	sortWindows(shown)
	d := limitData{Since: list.Since}
	d.head = head{
		Title: "Rate limits", Text: "Requests that count against each limit in the current window.",
		Tabs: []tab{
			{Title: "In use", Path: v.With("view", "", "page", ""), Here: !all, Count: strconv.Itoa(used)},
			{Title: "All limits", Path: v.With("view", "all", "page", ""), Here: all, Count: strconv.Itoa(len(list.Windows))},
		},
	}
	d.Table = limitTable(v, shown, list)
	return d
}

// inUse reports whether a window has admitted requests since its start or throttled requests in 24 hours.
func inUse(w *operator.Window) bool { return w.Used > 0 || w.Throttled > 0 }

// sortWindows sorts windows by scope. The scopes with the most throttled requests come first, then the scopes with the fullest windows.
func sortWindows(list []operator.Window) {
	most, throttled := make(map[string]float64), make(map[string]int64)
	for i := range list {
		scope := list[i].Scope
		most[scope], throttled[scope] = max(most[scope], usedShare(&list[i])), throttled[scope]+list[i].Throttled
	}
	slices.SortStableFunc(list, func(a, b operator.Window) int {
		return cmp.Or(
			cmp.Compare(throttled[b.Scope], throttled[a.Scope]), cmp.Compare(most[b.Scope], most[a.Scope]), strings.Compare(a.Scope, b.Scope),
			cmp.Compare(b.Throttled, a.Throttled), cmp.Compare(usedShare(&b), usedShare(&a)))
	})
}

// usedShare returns the used fraction of a window, or 0 if the window has no limit.
func usedShare(w *operator.Window) float64 {
	if w.Limit == 0 {
		return 0
	}
	return float64(w.Used) / float64(w.Limit)
}

// limitTable lists the shown windows of a list.
func limitTable(v *visit, shown []operator.Window, list *operator.LimitList) table {
	return newTable(v, shown, tableSpec[operator.Window]{
		Name: "limits", Caption: "Windows of rate limits", Whole: true, Empty: noLimits(v),
		Group: func(w *operator.Window) (string, cell) { return w.Scope, limitScope(v, list, w.Scope) },
		Columns: []column[operator.Window]{
			{Key: "window", Title: "Window", Value: func(w *operator.Window) any { return title(w.Window) }},
			{Key: "state", Title: "Status", Cell: limitState},
			{
				Key: "throttled", Title: "Throttled, 24 h", Number: true,
				Cell: func(w *operator.Window) cell {
					if w.Throttled == 0 {
						return textCell("0")
					}
					return linkCell(count(w.Throttled), throttledPath(v, w.Scope, list.Since))
				},
			},
			{
				Key: "share", Title: "Used",
				Cell: func(w *operator.Window) cell { return cell{Bar: new(limitBar(w)), Sub: smallPercent(usedShare(w))} },
			},
			{Key: "used", Title: "Requests", Number: true, Value: func(w *operator.Window) any { return w.Used }},
			{Key: "limit", Title: "Limit", Number: true, Cell: func(w *operator.Window) cell { return limitCell(w, w.Limit) }},
			{Key: "left", Title: "Remaining", Number: true, Cell: func(w *operator.Window) cell { return limitCell(w, w.Remaining) }},
			{Key: "reset", Title: "Resets in", Number: true, Cell: func(w *operator.Window) cell {
				return textCell(lastingFully(time.Duration(w.ResetSeconds) * time.Second))
			}},
			{Key: "leases", Title: "Leased to gateways", Off: true, Cell: leases},
		},
	})
}

// noLimits returns the empty state of the page.
func noLimits(v *visit) empty {
	return empty{
		Icon: "gauge", Title: "No limit is in use",
		Text: "Limits appear here with their remaining calls once a caller with a limit has sent a request:",
		Code: &code{"request", sampleCall}, Next: &button{Title: "Show all limits", Path: v.With("view", "all")},
	}
}

// limitCell shows a number of requests. It is empty if the limit of the window is unknown.
func limitCell(w *operator.Window, n int64) cell {
	if w.Limit == 0 {
		return cell{}
	}
	return textCell(count(n))
}

// throttledPath returns the address of the throttled requests of a scope since a time. For a class, these are the requests of its key or
// team, or all.
func throttledPath(v *visit, scope string, since time.Time) string {
	pairs := []string{"outcome", "throttled", "from", since.Format(time.RFC3339)}
	kind, id, _ := strings.Cut(scope, ":")
	if _, of, found := strings.Cut(id, "/"); kind == "class" && found {
		kind, id, _ = strings.Cut(of, "/")
	}
	if kind == "key" || kind == "team" {
		pairs = append(pairs, kind, id)
	}
	return v.Link("requests", pairs...)
}

// limitScope shows the owner of a limit, such as key:ann, with a link to its requests and the form that resets its windows.
func limitScope(v *visit, list *operator.LimitList, scope string) cell {
	kind, id, _ := strings.Cut(scope, ":")
	c := textCell(cmp.Or(id, scope, "Organisation"), kind)
	if kind == "key" || kind == "team" {
		c.Path = v.Link("requests", kind, id)
	}
	if v.may(resetLimit) && slices.ContainsFunc(list.Windows, func(w operator.Window) bool { return w.Scope == scope && w.Used > 0 }) {
		f := v.post("limits/reset", "", "Reset all windows")
		f.Subject, f.Hidden = "of "+scopeName(scope), append(f.Hidden, hiddenField{"scope", scope})
		c.Forms = []form{f}
	}
	return c
}

// limitState shows whether a caller is throttled.
func limitState(w *operator.Window) cell {
	switch {
	case w.Limit > 0 && w.Remaining <= 0:
		return cell{Status: &status{levelBad, "Throttled"}}
	case usedShare(w) >= 0.8:
		return cell{Status: &status{levelWarn, "Near limit"}}
	case w.Throttled > 0:
		return cell{Status: &status{levelWarn, "Throttled before"}}
	case w.Used == 0:
		return cell{Status: &status{levelNeutral, "Not used"}}
	}
	return cell{Status: &status{levelGood, "OK"}}
}

// limitBar returns the bar of a window.
func limitBar(w *operator.Window) bar {
	b := newBar(float64(w.Limit), float64(w.Used), 0, 0)
	b.Label = count(w.Used) + " of " + count(w.Limit) + " requests"
	return b
}

// leases lists the gateways that hold a share of a window.
func leases(w *operator.Window) (c cell) {
	for _, l := range w.Leases {
		c.Lines = append(c.Lines, l.Gateway+": "+count(l.Held))
	}
	return c
}

// scopeName describes a scope such as key:ann, or the organisation for an empty scope.
func scopeName(scope string) string {
	return cmp.Or(strings.Replace(scope, ":", " ", 1), "the organisation")
}
