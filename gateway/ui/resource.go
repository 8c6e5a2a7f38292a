package ui

import (
	"cmp"
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
	head

	Facts  []fact
	Costs  part[money.Costs]
	Chart  chart.Chart
	Idle   *money.Idle
	Tiles  []tile
	Snooze *form
	Adopt  *form
	// Stop is the call that ends the cost of the resource, and StopHint describes its effect. Stop is nil for a kind without such a call.
	// Handling describes what happens to idle resources.
	Stop     *code
	StopHint string
	Handling string
	// Requests lists the requests that refer to the resource.
	Requests part[decisions.List]
	Calls    table

	id string
}

func loadResource(v *visit) (any, int, string) {
	id := v.r.PathValue("id")
	d := oneResource{id: id, head: head{Title: id, Parents: v.parents("Resources", "resources")}}
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
	d.Chart = costChart(v, &d.Costs.Is, "resource")
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
	d.Title = cmp.Or(r.Name, d.Title)
	state := stateCell(v, r, d.Idle)
	if gone {
		state.Status = &status{levelNeutral, "Deleted"}
	}
	d.Badge = state.Status
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
	add("Created", v.exactCell(r.Since))
	add("Labels", textCell(pairs(r.Labels)))
	if r.Decision != "" {
		add("Created by", linkCell("View request", v.Link("requests/"+url.PathEscape(r.Decision))))
	}
	if r.Key != "" {
		d.Actions = append(d.Actions, button{Title: "Requests of key " + r.Key, Icon: "list", Path: v.Link("requests", "key", r.Key)})
	}
	total := decimal(d.Costs.Is.Total)
	d.Tiles = []tile{{Label: "Cost, " + lower(v.period.Label()), Value: usdOf(total)}}
	if !gone {
		d.Tiles = append([]tile{{
			Label: "Burn rate now", Value: amount(r.Takes.PerHour), Unit: "per hour",
			Note: amount(month(r.Takes.PerHour)) + " per month at this rate",
		}}, d.Tiles...)
	}
	if d.Idle != nil {
		d.Tiles = append(d.Tiles, tile{
			Label: "Idle cost so far", Value: amount(d.Idle.Cost),
			Note: strings.Join(append([]string{state.Sub}, present(projection(v, d.Idle))...), ", "),
		})
	}
	d.change(v, r, gone)
	if !gone {
		d.Stop, d.StopHint = stopCall(r.Kind, r.ID, decimal(r.Takes.PerHour) > 0 && (d.Idle == nil || d.Idle.Reason != "stopped"))
	}
	if d.Idle != nil {
		d.Handling = handling(list)
	}
}

// stopCall returns the call that stops a running pod or the idle workers of an endpoint, or deletes another resource, and a description of
// its effect. It returns nil for a kind without such a call.
func stopCall(kind, id string, running bool) (*code, string) {
	call := func(method, path, body string) *code {
		text := "curl -X " + method + ` "$TOLLGATE_URL/v2/` + path + `" \` + "\n" + `  -H "Authorization: Bearer $TOLLGATE_KEY"`
		if body != "" {
			text += ` \` + "\n" + `  -H "Content-Type: application/json" \` + "\n  -d '" + body + "'"
		}
		return &code{"call", text}
	}
	path := map[string]string{
		"pod": "pods/", "endpoint": "serverless/", "network_volume": "network-volumes/", "cluster": "clusters/", "sandbox": "sandboxes/",
	}[kind]
	switch {
	case path == "":
		return nil, ""
	case kind == "endpoint":
		return call("PATCH", path+url.PathEscape(id), `{"workers": {"min": 0}}`), "To stop the idle workers of this endpoint, send this call with a key that may change it:"
	case kind == "pod" && running:
		return call("POST", path+url.PathEscape(id)+"/action", `{"action": "stop"}`), "To stop this pod, send this call with a key that may stop it:"
	}
	return call("DELETE", path+url.PathEscape(id), ""), "To delete this resource and its data, send this call with a key that may delete it:"
}

// handling describes how an organisation detects and handles idle resources.
func handling(l *money.IdleList) string {
	return "A running resource is idle after " + lasting(time.Duration(l.Minutes)*time.Minute) + " without work. " + map[string]string{
		"stop": "Pods are stopped after a notice.", "notify": "An alert is sent.", "list": "Nothing is stopped automatically.",
	}[string(l.Action)]
}

// change adds the forms that change a resource.
func (d *oneResource) change(v *visit, r *money.Resource, gone bool) {
	if gone || !v.may(snoozeRow) {
		return
	}
	if d.Idle != nil {
		d.Snooze = new(snoozeForm(v, r.ID))
	}
	if len(v.Teams()) > 0 {
		d.Adopt = new(adoptForm(v, r.ID, r.Team))
	}
}

// requestTable lists requests with few columns.
func requestTable(v *visit, list []explain.Summary) table {
	return newTable(v, list, tableSpec[explain.Summary]{
		Name: "requests", Caption: "Requests",
		Columns: []column[explain.Summary]{
			{Title: "Time", Value: func(s *explain.Summary) any { return s.Time }},
			{Title: "Outcome", Cell: func(s *explain.Summary) cell { return statusCell(s.Verdict) }},
			{Title: "Operation", Value: func(s *explain.Summary) any { return s.Operation }},
			{Title: "Caller", Cell: func(s *explain.Summary) cell { return ownerCell(s.Team, s.Key) }},
			{Title: "Reason", Value: func(s *explain.Summary) any { return reasonOf(s) }},
		},
		Path: func(s *explain.Summary) string { return v.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Empty: empty{
			Icon: "list", Title: "No requests",
			Text: "No recent request refers to this resource. Reads are stored only by the gateway that served them.",
		},
	})
}
