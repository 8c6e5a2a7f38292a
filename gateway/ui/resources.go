package ui

import (
	"cmp"
	"net/http"
	"net/url"
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

// resourceData holds the data of the Resources page.
type resourceData struct {
	List    part[money.ResourceList]
	Idle    part[money.IdleList]
	Filters form
	Chips   []chip
	Table   table

	tabs    []tab
	actions []button
}

// Head implements headed.
func (d resourceData) Head(*frame) head {
	return head{Title: "Resources", Text: d.text(), Tabs: d.tabs, Actions: d.actions}
}

// text describes the number of resources and their cost.
func (d resourceData) text() string {
	if !d.List.OK() {
		return ""
	}
	return plural(d.List.Is.All, "resource") + ", " + amount(d.List.Is.PerHour) + " per hour, " + amount(month(d.List.Is.PerHour)) + " per month at this rate"
}

// Notes describes problems of the ledger.
func (d resourceData) Notes() (list []note) {
	if !d.List.OK() {
		return nil
	}
	if l := d.List.Is.Loss; l != nil && l.Rebuilt == nil {
		list = append(list, note{levelBad, "The ledger is incomplete since " + moment(l.At) + " (" + l.Reason + "): calls that raise cost are refused until it is rebuilt."})
	} else if !d.List.Is.Complete {
		list = append(list, note{levelBad, "The ledger is incomplete: calls that raise cost are refused until it is rebuilt."})
	}
	return list
}

// idleByID returns idle resources by their ID.
func idleByID(list *money.IdleList) map[string]*money.IdleResource {
	out := make(map[string]*money.IdleResource, len(list.Resources))
	for i := range list.Resources {
		out[list.Resources[i].ID] = &list.Resources[i]
	}
	return out
}

// reconcileRow is the endpoint that compares the ledger with the platform.
const reconcileRow = "POST /admin/spend/reconcile"

func loadResources(v *visit) (any, int, string) {
	d := resourceData{tabs: resourceTabs(v, "resources")}
	q := v.query(resourceRow)
	q.Set("limit", cmp.Or(q.Get("limit"), strconv.Itoa(excerptSize)))
	together(
		func() { d.List = ask[money.ResourceList](v, resourceRow, q) },
		func() { d.Idle = ask[money.IdleList](v, idle, nil) },
	)
	d.Filters = v.filters(
		field{Name: "search", Label: "Search", Type: "search", Placeholder: "ID, name, key"},
		field{Name: "team", Label: "Team", Type: "select", Options: names("All teams", v.Teams(), "")},
		field{Name: "kind", Label: "Kind", Type: "select", Options: kinds("All kinds")}, field{Name: "gpu", Label: "GPU type"},
		field{Name: "label", Label: "Label", Placeholder: "name=value"},
	)
	for i := range d.List.Is.Resources {
		r := &d.List.Is.Resources[i]
		d.Filters.Fields[0].suggest(r.ID, r.Name)
		d.Filters.Fields[3].suggest(r.GPU)
		d.Filters.Fields[4].suggest(pairList(r.Labels)...)
	}
	d.Chips = v.chips(d.Filters)
	if v.may(reconcileRow) {
		d.actions = []button{{
			Title: "Check for drift", Icon: "refresh", Post: v.path + "spend/reconcile",
			Hidden: []hiddenField{{"org", v.org}, {"back", v.Here()}},
		}}
	}
	d.Table = resourceTable(v, &d.List.Is, idleByID(&d.Idle.Is))
	d.Table.Empty = (&listing{Chips: d.Chips}).empty(v, d.Table.Empty)
	return d, d.List.Status, d.List.Fault
}

// resourceTable lists resources.
func resourceTable(v *visit, list *money.ResourceList, idle map[string]*money.IdleResource) table {
	columns := []column[money.Resource]{
		{Key: "resource", Title: "Resource", Param: "name", Cell: func(r *money.Resource) cell { return resourceCell(r.Name, r.ID, r.Kind) }},
		{Key: "state", Title: "State", Cell: func(r *money.Resource) cell { return stateCell(v, r, idle[r.ID]) }},
		{Key: "owner", Title: "Owner", Cell: func(r *money.Resource) cell { return ownerCell(r.Team, r.Key) }},
		{Key: "gpu", Title: "GPU", Cell: func(r *money.Resource) cell { return textCell(r.GPU, r.DataCenter) }},
		{Key: "since", Title: "Created", Param: "newest", Cell: func(r *money.Resource) cell { return v.whenCell(r.Since) }},
		{
			Key: "hour", Title: "Per hour", Number: true, Param: "cost",
			Cell: func(r *money.Resource) cell { return textCell(amount(r.Takes.PerHour)) },
		},
		{
			Key: "month", Title: "Per month at this rate", Number: true,
			Cell: func(r *money.Resource) cell { return textCell(amount(month(r.Takes.PerHour))) },
		},
		{Key: "labels", Title: "Labels", Off: true, Cell: func(r *money.Resource) cell { return textCell(pairs(r.Labels)) }},
		{Title: "", Cell: func(r *money.Resource) cell { return actionsCell(v, r.ID, r.Team, idle[r.ID] != nil) }},
	}
	return newTable(v, list.Resources, tableSpec[money.Resource]{
		Name: "resources", Caption: "Resources that count against budgets", Columns: columns,
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
	for _, name := range sortedKeys(labels) {
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
func stateCell(v *visit, r *money.Resource, idle *money.IdleResource) cell {
	switch {
	case idle == nil && decimal(r.Takes.PerHour) == 0:
		return cell{Status: &status{levelNeutral, "Stopped"}}
	case idle == nil:
		return cell{Status: &status{levelGood, "Running"}}
	}
	return idleCell(v, &idle.Idle)
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
	switch reason {
	case "unused":
		return "GPU unused"
	case "no_jobs":
		return "No jobs"
	case "unmounted":
		return "Not mounted"
	}
	return title(reason)
}

// rowTeams is the largest number of teams among which a row of a table offers a choice: each row contains all of them. The page of the
// resource always does.
const rowTeams = 20

// actionsCell returns the actions on a resource.
func actionsCell(v *visit, id, team string, isIdle bool) cell {
	if !v.may("POST /admin/spend/snooze") {
		return cell{}
	}
	c := cell{Menu: "Actions"}
	if isIdle {
		c.Forms = append(c.Forms, snoozeForm(v, id))
	}
	if teams := v.Teams(); len(teams) > 0 && len(teams) <= rowTeams {
		c.Forms = append(c.Forms, v.post(adoptAction, id, "Change owner",
			field{Name: "team", Label: "New owner (team)", Type: "select", Options: chosenOf(teams, team)}))
	}
	if len(c.Forms) == 0 {
		return cell{}
	}
	return c
}

// chosenOf returns an option for each value. The title of an option equals its value.
func chosenOf(values []string, chosen string) (out []option) { return names("", values, chosen)[1:] }

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

// reservationData holds the data of the Reservations page.
type reservationData struct {
	List  part[money.HoldList]
	Table table

	tabs []tab
}

// Head implements headed.
func (d reservationData) Head(*frame) head {
	return head{Title: "Reservations", Text: "Amounts held for calls in flight, and for calls whose outcome is unknown. The next hour of running resources, which budgets also reserve, is not listed.", Tabs: d.tabs}
}

func loadReservations(v *visit) (any, int, string) {
	d := reservationData{List: ask[money.HoldList](v, holdRow, nil), tabs: resourceTabs(v, "reservations")}
	d.Table = holdTable(v, d.List.Is.Holds)
	return d, d.List.Status, d.List.Fault
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
			{
				Key: "hour", Title: "Per hour", Number: true, Compare: byAmount(func(h *money.Hold) string { return h.Reserves.PerHour }),
				Cell: func(h *money.Hold) cell { return textCell(amount(h.Reserves.PerHour)) },
			},
			{
				Key: "since", Title: "Created", Compare: byTime(func(h *money.Hold) time.Time { return h.Since }),
				Cell: func(h *money.Hold) cell { return v.whenCell(h.Since) },
			},
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

// idleData holds the data of the Idle page.
type idleData struct {
	List  part[money.IdleList]
	Tiles []tile
	Table table
}

// Head implements headed.
func (d idleData) Head(*frame) head {
	text := "Resources that cost money and do no work."
	if at := d.List.Is.At; at != nil {
		text += " " + handling(&d.List.Is) + " Checked " + moment(at) + "."
	}
	return head{Title: "Idle", Text: text}
}

func loadIdle(v *visit) (any, int, string) {
	d := idleData{List: ask[money.IdleList](v, idle, nil)}
	if d.List.Status == http.StatusBadRequest { // idle detection is disabled
		d.Table.Empty = empty{
			Icon: "moon", Title: "Idle detection is off",
			Text: "Set idle.for of the organisation to find resources that cost money and do no work.",
			Code: &code{"configuration", "orgs:\n  - id: " + v.org + "\n    idle: {for: 1h}"},
		}
		return d, 0, ""
	}
	waste, cost, snoozed, n := 0.0, 0.0, 0, 0
	for i := range d.List.Is.Resources {
		r := &d.List.Is.Resources[i]
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
		{Label: "If they stay idle", Value: usdOf(waste), Unit: "per month"},
		{Label: "Snoozed", Value: count(int64(snoozed)), Note: "not counted as idle cost"},
	}
	d.Table = idleTable(v, d.List.Is.Resources)
	return d, d.List.Status, d.List.Fault
}

// idleTable lists idle resources, the highest waste first.
func idleTable(v *visit, list []money.IdleResource) table {
	mayKeep := v.may("POST /admin/spend/snooze")
	sortByWaste(list)
	return newTable(v, list, tableSpec[money.IdleResource]{
		Name: "idle", Caption: "Idle resources", Whole: true,
		Columns: []column[money.IdleResource]{
			{Key: "resource", Title: "Resource", Cell: func(r *money.IdleResource) cell { return resourceCell(r.Name, r.ID, r.Kind) }},
			{
				Key: "state", Title: "State", Compare: byTime(func(r *money.IdleResource) time.Time { return r.Since }),
				Cell: func(r *money.IdleResource) cell { return idleCell(v, &r.Idle) },
			},
			{
				Key: "owner", Title: "Owner", Compare: byText(func(r *money.IdleResource) string { return r.Team + " " + r.Key }),
				Cell: func(r *money.IdleResource) cell { return ownerCell(r.Team, r.Key) },
			},
			{
				Key: "cost", Title: "Cost so far", Number: true, Compare: byAmount(func(r *money.IdleResource) string { return r.Cost }),
				Cell: func(r *money.IdleResource) cell { return textCell(amount(r.Cost)) },
			},
			{
				Key: "waste", Title: "Per month if it stays idle", Number: true,
				Compare: byAmount(func(r *money.IdleResource) string { return r.PerMonth }),
				Cell:    func(r *money.IdleResource) cell { return textCell(amount(r.PerMonth)) },
			},
			{Title: "", Cell: func(r *money.IdleResource) cell {
				if !mayKeep {
					return cell{}
				}
				return cell{Links: []button{snoozeButton(v, r)}, Forms: nil}
			}},
		},
		Path:  func(r *money.IdleResource) string { return v.Link("resources/" + url.PathEscape(r.ID)) },
		Muted: func(r *money.IdleResource) bool { return r.SnoozedUntil != nil },
		Empty: empty{Icon: "check", Title: "No idle resources", Text: "Everything that costs money is in use."},
	})
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
