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
type limitData struct{ operator.LimitList }

func loadLimits(v *visit) (any, int, string) {
	list := ask[operator.LimitList](v, limitRow, nil)
	return limitData{list.Is}, list.Status, list.Fault
}

// Head returns the header, with tabs for windows in use and for all windows.
func (d limitData) Head(f *frame) head {
	used := 0
	for i := range d.Windows {
		if d.Windows[i].Used > 0 {
			used++
		}
	}
	all := f.Query("view") == "all"
	return head{
		Title: "Rate limits", Text: "Requests that count against each limit in the current window.",
		Tabs: []tab{
			{Title: "In use", Path: f.With("view", "", "page", ""), Here: !all, Count: strconv.Itoa(used)},
			{Title: "All limits", Path: f.With("view", "all", "page", ""), Here: all, Count: strconv.Itoa(len(d.Windows))},
		},
	}
}

// shown returns the windows of the selected view by scope, the scope with the fullest window first.
func (d limitData) shown(f *frame) []operator.Window {
	list := slices.Clone(d.Windows)
	if f.Query("view") != "all" {
		list = slices.DeleteFunc(list, func(w operator.Window) bool { return w.Used == 0 })
	}
	most := make(map[string]float64)
	for i := range list {
		most[list[i].Scope] = max(most[list[i].Scope], usedShare(&list[i]))
	}
	slices.SortStableFunc(list, func(a, b operator.Window) int {
		return cmp.Or(cmp.Compare(most[b.Scope], most[a.Scope]), strings.Compare(a.Scope, b.Scope), cmp.Compare(usedShare(&b), usedShare(&a)))
	})
	return list
}

// usedShare returns the used fraction of a window.
func usedShare(w *operator.Window) float64 { return float64(w.Used) / float64(max(1, w.Limit)) }

// Table returns the windows.
func (d limitData) Table(f *frame) table {
	list, last := d.shown(f), ""
	return newTable(f.visit, list, tableSpec[operator.Window]{
		Name: "limits", Caption: "Windows of rate limits", Whole: true, Empty: noLimits(f),
		Columns: []column[operator.Window]{
			{
				Key: "scope", Title: "Applies to", Compare: byText(func(w *operator.Window) string { return w.Scope }),
				Cell: func(w *operator.Window) cell { return limitScope(f.visit, w.Scope) },
			},
			{Key: "window", Title: "Window", Cell: func(w *operator.Window) cell { return textCell(title(w.Window)) }},
			{Key: "state", Title: "Status", Cell: limitState},
			{Key: "share", Title: "Used", Cell: func(w *operator.Window) cell {
				x := limitBar(w)
				return cell{
					Bar: &x,
					Sub: smallPercent(usedShare(w)),
				}
			}},
			{
				Key: "used", Title: "Requests", Number: true, Compare: func(a, b *operator.Window) int { return cmp.Compare(a.Used, b.Used) },
				Cell: func(w *operator.Window) cell { return textCell(count(w.Used)) },
			},
			{
				Key: "limit", Title: "Limit", Number: true, Compare: func(a, b *operator.Window) int { return cmp.Compare(a.Limit, b.Limit) },
				Cell: func(w *operator.Window) cell { return textCell(count(w.Limit)) },
			},
			{Key: "left", Title: "Remaining", Number: true, Cell: func(w *operator.Window) cell { return textCell(count(w.Remaining)) }},
			{Key: "reset", Title: "Resets in", Number: true, Cell: func(w *operator.Window) cell {
				return textCell(lastingFully(time.Duration(w.ResetSeconds) * time.Second))
			}},
			{Key: "leases", Title: "Leased to gateways", Off: true, Cell: leases},
			{Key: "", Title: "Actions", Cell: func(w *operator.Window) cell {
				if w.Scope == last || w.Used == 0 { // a reset empties all windows of the scope
					return cell{}
				}
				last = w.Scope
				return limitActions(f.visit, w)
			}},
		},
	})
}

// noLimits returns the empty state of the page.
func noLimits(f *frame) empty {
	return empty{
		Icon: "gauge", Title: "No limit is in use",
		Text: "Limits appear here with their remaining calls once a caller with a limit has sent a request:",
		Code: &code{"request", sampleCall}, Next: &button{Title: "Show all limits", Path: f.With("view", "all")},
	}
}

// limitScope shows the owner of a limit, such as key:ann, with a link to its requests.
func limitScope(v *visit, scope string) cell {
	kind, id, _ := strings.Cut(scope, ":")
	if kind == "class" {
		return textCell(id, "class")
	}
	if kind != "key" && kind != "team" {
		return textCell(cmp.Or(id, scope), kind)
	}
	c := linkCell(id, v.Link("requests", kind, id))
	c.Sub = kind
	return c
}

// limitState shows whether a caller is throttled.
func limitState(w *operator.Window) cell {
	switch {
	case w.Remaining <= 0 && w.Used > 0:
		return cell{Status: &status{levelBad, "Throttled"}}
	case usedShare(w) >= 0.8:
		return cell{Status: &status{levelWarn, "Near limit"}}
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

// limitActions returns the form that resets all windows of the scope of a window.
func limitActions(v *visit, w *operator.Window) cell {
	if !v.Can(resetLimit) {
		return cell{}
	}
	f := v.post("limits/reset", "", "Reset all windows")
	f.Subject, f.Hidden = "of "+scopeName(w.Scope), append(f.Hidden, hiddenField{"scope", w.Scope})
	return cell{Forms: []form{f}}
}

// scopeName describes a scope such as key:ann, or the organisation for an empty scope.
func scopeName(scope string) string {
	return cmp.Or(strings.Replace(scope, ":", " ", 1), "the organisation")
}
