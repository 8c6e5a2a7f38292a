package ui

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// snoozeAction and adoptAction are actions on a resource.
const (
	snoozeAction = "spend/snooze"
	adoptAction  = "spend/adopt"
)

// resourceTabs returns the tabs of the resource pages.
func resourceTabs(v *visit, here string) (list []tab) {
	for _, t := range []struct{ title, page, row string }{{"Resources", "resources", resourceRow}, {"Reservations", "reservations", holdRow}} {
		if v.may(t.row) {
			list = append(list, tab{Title: t.title, Path: v.Link(t.page), Here: t.page == here})
		}
	}
	return list
}

// ledgerNotes describes problems of the ledger.
func ledgerNotes(list *money.ResourceList) []note {
	if l := list.Loss; l != nil && l.Rebuilt == nil {
		return []note{{levelBad, "The ledger has been incomplete since " + moment(l.At) + " (" + l.Reason + "): calls that raise cost are refused until it is rebuilt."}}
	} else if !list.Complete {
		return []note{{levelBad, "The ledger is incomplete: calls that raise cost are refused until it is rebuilt."}}
	}
	return nil
}

// idleByID returns why resources are idle, by their ID.
func idleByID(list *money.IdleList) map[string]*money.Idle {
	out := make(map[string]*money.Idle, len(list.Resources))
	for i := range list.Resources {
		out[list.Resources[i].ID] = &list.Resources[i].Idle
	}
	return out
}

func loadResources(v *visit) (any, int, string) {
	q := v.query(resourceRow)
	q.Set("limit", cmp.Or(q.Get("limit"), strconv.Itoa(pageSize)))
	var list part[money.ResourceList]
	var idles part[money.IdleList]
	together(
		func() { list = ask[money.ResourceList](v, resourceRow, q) },
		func() { idles = ask[money.IdleList](v, idle, nil) },
	)
	search := field{Name: "search", Label: "Search", Type: "search", Placeholder: "ID, name, key"}
	gpu, label := field{Name: "gpu", Label: "GPU type"}, field{Name: "label", Label: "Label", Placeholder: "name=value"}
	for i := range list.Is.Resources {
		r := &list.Is.Resources[i]
		search.suggest(r.ID, r.Name)
		gpu.suggest(r.GPU)
		label.suggest(pairList(r.Labels)...)
	}
	l := v.filtered(
		search, field{Name: "team", Label: "Team", Type: "select", Options: names("All teams", v.Teams(), "")},
		field{Name: "kind", Label: "Kind", Type: "select", Options: kinds("All kinds")}, gpu, label,
	)
	l.Tabs = resourceTabs(v, "resources")
	if v.may(reconcileRow) {
		l.Actions = []button{{
			Title: "Compare with the platform", Icon: "refresh", Post: v.path + "spend/reconcile",
			Hidden: []hiddenField{{"org", v.org}, {"back", v.Here()}},
		}}
	}
	if !list.OK() {
		return l, list.Status, list.Fault
	}
	rate := list.Is.PerHour
	l.Text = plural(list.Is.All, "resource") + ", " + amount(rate) + " per hour, " + amount(month(rate)) + " per month at this rate"
	l.Notes, l.Table = ledgerNotes(&list.Is), resourceTable(v, &list.Is, idleByID(&idles.Is))
	l.Table.Empty = l.empty(v, l.Table.Empty)
	return l, 0, ""
}

// resourceTable lists resources.
func resourceTable(v *visit, list *money.ResourceList, idle map[string]*money.Idle) table {
	columns := []column[money.Resource]{
		{Key: "resource", Title: "Resource", Param: "name", Cell: func(r *money.Resource) cell { return resourceCell(r.Name, r.ID, r.Kind) }},
		{Key: "state", Title: "State", Cell: func(r *money.Resource) cell { return stateCell(v, r, idle[r.ID]) }},
		{Key: "owner", Title: "Owner", Cell: func(r *money.Resource) cell { return ownerCell(r.Team, r.Key) }},
		{Key: "gpu", Title: "GPU", Cell: func(r *money.Resource) cell { return textCell(r.GPU, r.DataCenter) }},
		{Key: "since", Title: "Created", Param: "newest", Down: true, Value: func(r *money.Resource) any { return r.Since }},
		{Key: "hour", Title: "Per hour", Param: "cost", Number: true, Value: func(r *money.Resource) any { return dollars(r.Takes.PerHour) }},
		{
			Key: "month", Title: "Per month at this rate", Number: true,
			Value: func(r *money.Resource) any { return dollars(month(r.Takes.PerHour)) },
		},
		{Key: "labels", Title: "Labels", Off: true, Value: func(r *money.Resource) any { return pairs(r.Labels) }},
		{Title: "", Cell: func(r *money.Resource) cell { return actionsCell(v, r.ID, r.Team, idle[r.ID] != nil) }},
	}
	return newTable(v, list.Resources, tableSpec[money.Resource]{
		Name: "resources", Caption: "Resources that count against budgets", Columns: columns, Order: "cost",
		Next: v.older("cursor", list.Next), Prev: v.newest("cursor"),
		Path: func(r *money.Resource) string { return v.Link("resources/" + url.PathEscape(r.ID)) },
		Empty: empty{
			Icon: "server", Title: "No resources",
			Text: "Pods, endpoints and volumes rented through the gateway appear here while they cost money. The cost explorer lists deleted resources.",
		},
	})
}

// pairs formats labels on one line.
func pairs(labels map[string]string) string { return strings.Join(pairList(labels), ", ") }

// pairList formats labels as name=value.
func pairList(labels map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, name+"="+labels[name])
	}
	return list
}

// resourceCell shows the name, ID and kind of a resource.
func resourceCell(name, id, kind string) cell {
	if name == "" {
		return textCell(id, words(kind))
	}
	return textCell(name, id, words(kind))
}

// ownerCell shows the team and key of an owner.
func ownerCell(team, key string) cell {
	if team+key == "" {
		return statusCell("no owner")
	}
	if key == "" {
		return textCell(team)
	}
	return textCell(team, "key "+key)
}

// stateCell shows whether a resource is idle.
func stateCell(v *visit, r *money.Resource, idle *money.Idle) cell {
	switch {
	case idle == nil && decimal(r.Takes.PerHour) == 0:
		return cell{Status: &status{levelNeutral, "Stopped"}}
	case idle == nil:
		return cell{Status: &status{levelGood, "Running"}}
	}
	return idleCell(v, idle)
}

// idleCell shows the reason and the start of idleness.
func idleCell(v *visit, i *money.Idle) cell {
	c := cell{Status: &status{levelWarn, idleReason(i.Reason)}, Sub: "idle for " + lasting(v.now().Sub(i.Since))}
	if i.SnoozedUntil != nil {
		c.Status = &status{levelInfo, "Snoozed"}
		c.Sub = "until " + i.SnoozedUntil.In(v.zone()).Format("2 Jan 15:04")
	} else if i.StopAt != nil {
		c.Sub += ", stops " + i.StopAt.In(v.zone()).Format("2 Jan 15:04")
	}
	return c
}

// idleReason describes a reason for idleness.
func idleReason(reason string) string {
	return cmp.Or(map[string]string{"unused": "GPU unused", "unmounted": "Not mounted"}[reason], title(reason))
}

// rowTeams is the maximum number of teams for which each row of a table offers a choice of owner, because each row contains all teams. The
// page of a resource always offers the choice.
const rowTeams = 20

// actionsCell returns the actions on a resource.
func actionsCell(v *visit, id, team string, isIdle bool) cell {
	if !v.may(snoozeRow) {
		return cell{}
	}
	c := cell{Menu: "Actions"}
	if isIdle {
		c.Forms = append(c.Forms, snoozeForm(v, id))
	}
	if teams := v.Teams(); len(teams) > 0 && len(teams) <= rowTeams {
		c.Forms = append(c.Forms, adoptForm(v, id, team))
	}
	if len(c.Forms) == 0 {
		return cell{}
	}
	return c
}

// adoptForm returns the form that changes the team of a resource.
func adoptForm(v *visit, id, team string) form {
	return v.post(adoptAction, id, "Change owner",
		field{Name: "team", Label: "New owner (team)", Type: "select", Options: names("", v.Teams(), team)[1:]})
}

// snoozeForm returns the form that snoozes an idle resource.
func snoozeForm(v *visit, id string) form {
	f := v.post(snoozeAction, id, "Snooze", field{
		Name: "for", Label: "Snooze for", Type: "select",
		Options: []option{
			{"24h", "1 day", false},
			{"72h", "3 days", false},
			{"7d", "1 week", true},
			{"30d", "30 days", false},
			{"0s", "End the snooze", false},
		},
	})
	f.Icon = "moon"
	return f
}

// reservations returns the page that lists reservations.
func reservations(v *visit, list *money.HoldList) listing {
	return listing{Table: holdTable(v, list.Holds), head: head{
		Tabs: resourceTabs(v, "reservations"),
		Text: "Amounts reserved for calls in progress and for calls with an unknown outcome. Budgets also reserve the cost of running resources (by default, for the next hour), which this list omits.",
	}}
}

// holdTable lists reservations.
func holdTable(v *visit, list []money.Hold) table {
	mayRelease := v.may("POST /admin/spend/holds/release")
	return newTable(v, list, tableSpec[money.Hold]{
		Name: "reservations", Caption: "Reservations", Whole: true,
		Columns: []column[money.Hold]{
			{Key: "id", Title: "Reservation", Cell: func(h *money.Hold) cell { return codeCell(h.ID) }},
			{Key: "state", Title: "State", Cell: func(h *money.Hold) cell { return statusCell(h.State) }},
			{Key: "operation", Title: "Operation", Cell: func(h *money.Hold) cell { return textCell(h.Operation, h.Name) }},
			{Key: "owner", Title: "Owner", Cell: func(h *money.Hold) cell { return ownerCell(h.Team, h.Key) }},
			{Key: "hour", Title: "Per hour", Sort: true, Number: true, Value: func(h *money.Hold) any { return dollars(h.Reserves.PerHour) }},
			{Key: "since", Title: "Created", Sort: true, Value: func(h *money.Hold) any { return h.Since }},
			{Title: "", Cell: func(h *money.Hold) cell {
				if !mayRelease {
					return cell{}
				}
				return cell{Menu: "Actions", Forms: []form{v.post("spend/holds/release", h.ID, "Release",
					field{Name: "reason", Label: "Reason", Required: true, Max: 500})}}
			}},
		},
		Path:  func(h *money.Hold) string { return v.Link("requests/" + url.PathEscape(h.Decision)) },
		Empty: empty{Icon: "check", Title: "No reservations", Text: "Every call has ended, and its cost is known."},
	})
}

func loadIdle(v *visit) (any, int, string) {
	list := ask[money.IdleList](v, idle, nil)
	d := listing{head: head{Text: "Resources that cost money and do no work."}}
	if at := list.Is.At; at != nil {
		d.Text += " " + handling(&list.Is) + " Checked " + moment(at) + "."
	}
	if offBecause(list) {
		d.Table.Empty = empty{
			Icon: "moon", Title: "Idle detection is off",
			Text: "Idle detection finds resources that cost money but do no work. To turn it on, set orgs[].idle.for in the configuration.",
			Code: &code{"configuration", "orgs:\n  - id: " + v.org + "\n    idle: {for: 1h}"},
		}
		return d, 0, ""
	}
	waste, cost, snoozed, n := 0.0, 0.0, 0, 0
	for i := range list.Is.Resources {
		r := &list.Is.Resources[i]
		if r.SnoozedUntil != nil {
			snoozed++
			continue
		}
		waste += decimal(r.PerMonth)
		cost += decimal(r.Cost)
		n++
	}
	d.Tiles = []tile{
		{Label: "Idle cost so far", Value: usdOf(cost), Note: plural(n, "idle resource")},
		{Label: "Cost rate", Value: usdOf(waste / hoursPerMonth), Unit: "per hour", Note: usdOf(waste) + " per month if they stay idle"},
		{Label: "Snoozed", Value: count(int64(snoozed)), Note: "not counted as idle cost"},
	}
	d.Table = idleTable(v, list.Is.Resources)
	return d, list.Status, list.Fault
}

// idleTable lists idle resources, the highest waste first.
func idleTable(v *visit, list []money.IdleResource) table {
	mayKeep := v.may(snoozeRow)
	sortByWaste(list)
	return newTable(v, list, tableSpec[money.IdleResource]{
		Name: "idle", Caption: "Idle resources", Whole: true, Order: "-waste",
		Columns: []column[money.IdleResource]{
			{Key: "resource", Title: "Resource", Cell: func(r *money.IdleResource) cell { return resourceCell(r.Name, r.ID, r.Kind) }},
			{
				Key: "state", Title: "State", Sort: true, Value: func(r *money.IdleResource) any { return r.Since },
				Cell: func(r *money.IdleResource) cell { return idleCell(v, &r.Idle) },
			},
			{
				Key: "owner", Title: "Owner", Sort: true, Value: func(r *money.IdleResource) any { return r.Team + " " + r.Key },
				Cell: func(r *money.IdleResource) cell { return ownerCell(r.Team, r.Key) },
			},
			{Key: "cost", Title: "Idle cost so far", Sort: true, Number: true, Value: func(r *money.IdleResource) any { return dollars(r.Cost) }},
			{
				Key: "waste", Title: "Cost rate", Sort: true, Number: true, Value: func(r *money.IdleResource) any { return dollars(r.PerMonth) },
				Cell: func(r *money.IdleResource) cell {
					return textCell(usdOf(decimal(r.PerMonth)/hoursPerMonth)+" per hour", present(projection(v, &r.Idle))...)
				},
			},
			{Title: "", Cell: func(r *money.IdleResource) (c cell) {
				if stop, _ := stopCall(r.Kind, r.ID, true); stop != nil {
					c.Links = append(c.Links, button{Title: "How to stop", Path: v.Link("resources/"+url.PathEscape(r.ID)) + "#stop"})
				}
				if mayKeep {
					c.Links = append(c.Links, snoozeButton(v, r))
				}
				return c
			}},
		},
		Path:  func(r *money.IdleResource) string { return v.Link("resources/" + url.PathEscape(r.ID)) },
		Muted: func(r *money.IdleResource) bool { return r.SnoozedUntil != nil },
		Empty: empty{Icon: "check", Title: "No idle resources", Text: "No resource has been idle for long enough to be listed."},
	})
}

// projection describes the monthly cost of an idle resource. It returns "" during the first hour, which is too short for a projection.
func projection(v *visit, i *money.Idle) string {
	if v.now().Sub(i.Since) < time.Hour {
		return ""
	}
	return amount(i.PerMonth) + " per month if it stays idle"
}

// snoozeButton returns a button that snoozes a resource for a week, or ends its snooze.
func snoozeButton(v *visit, r *money.IdleResource) button {
	b := button{Title: "Snooze 7 days", Icon: "moon", Post: v.path + snoozeAction}
	duration := "7d"
	if r.SnoozedUntil != nil {
		b.Title, duration = "End snooze", "0s"
	}
	b.Hidden = []hiddenField{{"org", v.org}, {"back", v.Here()}, {"id", r.ID}, {"for", duration}}
	return b
}
