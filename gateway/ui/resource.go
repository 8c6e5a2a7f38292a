package ui

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/ui/chart"
)

// oneResource holds the data of a resource's page.
type oneResource struct {
	Facts  []fact
	Costs  part[money.Costs]
	Chart  chart.Chart
	Idle   *money.IdleResource
	Tiles  []tile
	Snooze *form
	Adopt  *form
	// Stop is the call that stops the resource, and nil if it cannot be stopped. Handling describes what happens to idle resources.
	Stop     *code
	Handling string
	// Requests lists the requests that refer to the resource.
	Requests part[decisions.List]
	Calls    table

	name, id string
	badge    *status
	parents  []link
	actions  []button
}

// Head implements headed.
func (d oneResource) Head(*frame) head {
	return head{Title: d.name, Badge: d.badge, Parents: d.parents, Actions: d.actions}
}

func loadResource(v *visit) (any, int, string) {
	id := v.r.PathValue("id")
	d := oneResource{id: id, name: id, parents: []link{{Title: "Resources", Path: v.Link("resources")}}}
	var live part[money.ResourceList]
	var idles part[money.IdleList]
	together(
		func() { live = ask[money.ResourceList](v, resourceRow, url.Values{"resource": {id}}) },
		func() { idles = ask[money.IdleList](v, idle, nil) },
		func() {
			d.Costs = ask[money.Costs](v, history, with(v.period.Values(), "resource", id, "by", "resource,team,key", "bucket", v.period.Bucket()))
		},
		func() {
			d.Requests = ask[decisions.List](v, decisionList, url.Values{"resource": {id}, "limit": {"20"}})
		},
	)
	if !live.OK() {
		return nil, live.Status, live.Fault
	}
	var r *money.Resource
	for i := range live.Is.Resources {
		r = &live.Is.Resources[i]
	}
	if r == nil && len(d.Costs.Is.Rows) == 0 {
		return nil, http.StatusNotFound, "No resource has the ID " + id + ", and none has had costs in this period."
	}
	d.Idle = idleByID(&idles.Is)[id]
	d.Chart = costChart(v, "cost", &d.Costs.Is, "resource")
	d.Chart.Title = "Cost"
	d.describe(v, r, &idles.Is)
	d.Calls = requestTable(v, d.Requests.Is.Decisions)
	return d, 0, ""
}

// describe sets the facts about a resource. If r is nil, the resource no longer exists, and the facts come from its costs.
func (d *oneResource) describe(v *visit, r *money.Resource, list *money.IdleList) {
	gone := r == nil
	if gone {
		c := &d.Costs.Is.Rows[len(d.Costs.Is.Rows)-1]
		r = &money.Resource{
			ID: d.id, Kind: c.Kind, Name: c.Name, Team: c.Team, Key: c.Key, GPU: c.GPU, DataCenter: c.DataCenter,
			Decision: c.Decision, Labels: c.Labels,
		}
	}
	if r.Name != "" {
		d.name = r.Name
	}
	state := stateCell(v, r, d.Idle)
	if gone {
		state.Status = &status{levelNeutral, "Deleted"}
	}
	d.badge = state.Status
	id := codeCell(r.ID)
	d.Facts = []fact{{"ID", id}, {"Kind", textCell(title(r.Kind))}, {"Owner", ownerCell(r.Team, r.Key)}}
	add := func(label string, c cell) {
		if c.Text != "" || c.When != nil {
			d.Facts = append(d.Facts, fact{label, c})
		}
	}
	if r.Team != "" {
		d.Facts[2].Path = v.Link("cost", "team", r.Team, "by", "resource")
	}
	add("GPU", textCell(r.GPU))
	add("Data centre", textCell(r.DataCenter))
	add("Created", v.whenCell(r.Since))
	add("Labels", textCell(pairs(r.Labels)))
	if r.Decision != "" {
		add("Created by", linkCell("View request", v.Link("requests/"+url.PathEscape(r.Decision))))
	}
	if r.Key != "" {
		d.actions = append(d.actions, button{Title: "Requests of key " + r.Key, Icon: "list", Path: v.Link("requests", "key", r.Key)})
	}
	total := decimal(d.Costs.Is.Total)
	d.Tiles = []tile{{Label: "Cost, " + strings.ToLower(v.period.Label()), Value: usdOf(total)}}
	if !gone {
		d.Tiles = append([]tile{{
			Label: "Burn rate now", Value: amount(r.Takes.PerHour), Unit: "per hour",
			Note: amount(month(r.Takes.PerHour)) + " per month at this rate",
		}}, d.Tiles...)
	}
	if d.Idle != nil {
		d.Tiles = append(d.Tiles, tile{
			Label: "Idle cost so far", Value: amount(d.Idle.Cost),
			Note: state.Sub + ", " + amount(d.Idle.PerMonth) + " per month if it stays idle",
		})
	}
	d.change(v, r, gone)
	if !gone && r.Kind == "pod" && decimal(r.Takes.PerHour) > 0 {
		d.Stop = &code{"call that stops the pod", `curl -X POST "$TOLLGATE_URL/v2/pods/` + url.PathEscape(r.ID) + `/action" \
  -H "Authorization: Bearer $TOLLGATE_KEY" \
  -H "Content-Type: application/json" \
  -d '{"action": "stop"}'`}
	}
	if d.Idle != nil {
		d.Handling = handling(list)
	}
}

// handling describes how an organisation detects and handles idle resources.
func handling(l *money.IdleList) string {
	return "A running resource is idle after " + lasting(time.Duration(l.Minutes)*time.Minute) + " without work. " + map[string]string{
		"stop": "Pods are stopped after a notice.", "notify": "An alert is sent.", "list": "Nothing is stopped automatically.",
	}[string(l.Action)]
}

// change adds the forms that change a resource.
func (d *oneResource) change(v *visit, r *money.Resource, gone bool) {
	if gone || !v.may("POST /admin/spend/snooze") {
		return
	}
	if d.Idle != nil {
		f := snoozeForm(v, r.ID)
		d.Snooze = &f
	}
	if teams := v.Teams(); len(teams) > 0 {
		f := v.post(adoptAction, r.ID, "Change owner",
			field{Name: "team", Label: "New owner (team)", Type: "select", Options: chosenOf(teams, r.Team)})
		d.Adopt = &f
	}
}

// requestTable lists requests with few columns.
func requestTable(v *visit, list []explain.Summary) table {
	return newTable(v, list, tableSpec[explain.Summary]{
		Name: "requests", Caption: "Requests",
		Columns: []column[explain.Summary]{
			{Title: "Time", Cell: func(s *explain.Summary) cell { return v.whenCell(s.Time) }},
			{Title: "Outcome", Cell: func(s *explain.Summary) cell { return statusCell(s.Verdict) }},
			{Title: "Operation", Cell: func(s *explain.Summary) cell { return textCell(s.Operation) }},
			{Title: "Caller", Cell: func(s *explain.Summary) cell { return ownerCell(s.Team, s.Key) }},
			{Title: "Reason", Cell: func(s *explain.Summary) cell { return textCell(reasonOf(s)) }},
		},
		Path: func(s *explain.Summary) string { return v.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Empty: empty{
			Icon: "list", Title: "No requests",
			Text: "No recent request names this resource. Reads are stored only by the gateway that served them.",
		},
	})
}
