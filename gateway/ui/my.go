package ui

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/reference"
	"github.com/tollgate-dev/tollgate/gateway/selfservice"
)

// myFacts holds the API responses for the first page of callers.
type myFacts struct {
	me        part[selfservice.Me]
	resources part[selfservice.ResourceList]
	requests  part[selfservice.RequestList]
	denied    part[decisions.List]
}

// myData holds the data of the first page of callers.
type myData struct {
	head

	Notes                              []note
	Tiles                              []tile
	Facts                              []fact
	Attention                          attention
	Budgets, Limits, Resources, Denied table
}

// ownRows is the maximum number of rows of a table on the first page.
const ownRows = 5

// countedDenials is the maximum number of denied requests that the page counts.
const countedDenials = 100

func my(v *visit) (any, int, string) {
	f := myFacts{me: own[selfservice.Me](v, "me", url.Values{"forecast": {"true"}})}
	together( // each part may exceed the rate limit of the key; the page shows the others
		func() { f.resources = own[selfservice.ResourceList](v, "resources", nil) },
		func() { f.requests = own[selfservice.RequestList](v, "approvals", nil) },
		func() {
			f.denied = own[decisions.List](v, "decisions",
				url.Values{"refused": {"true"}, "since": {"168h"}, "limit": {strconv.Itoa(countedDenials)}})
		},
	)
	return newMy(v, &f), f.me.Status, f.me.Fault
}

func newMy(v *visit, f *myFacts) myData {
	me := &f.me.Is
	d := myData{Facts: myIdentity(v, me), Attention: myAttention(v, f), Tiles: myTiles(v, f)}
	if me.Team != "" {
		d.Title = "Team " + me.Team
	}
	for _, unknown := range me.Unknown {
		d.Notes = append(d.Notes, note{levelBad, "Unknown: " + unknown})
	}
	for _, p := range []struct{ what, fault string }{{"resources", f.resources.Fault}, {"approvals", f.requests.Fault}, {"denied requests", f.denied.Fault}} {
		if p.fault != "" && f.me.OK() {
			d.Notes = append(d.Notes, note{levelWarn, "Unknown: " + p.what + ": " + p.fault})
		}
	}
	d.Budgets = ownBudgets(v, ownBudgetRows(me.Budgets))
	d.Limits = ownLimits(v, me.Limits)
	list := f.resources.Is.Resources
	slices.SortStableFunc(list, func(a, b selfservice.Resource) int {
		return cmp.Compare(decimal(b.Takes.PerHour), decimal(a.Takes.PerHour))
	})
	d.Resources = ownResourceTable(v, list[:min(ownRows, len(list))])
	d.Denied = ownDenied(v, f.denied.Is.Decisions[:min(ownRows, len(f.denied.Is.Decisions))])
	missing(&d.Budgets, f.me.Fault)
	missing(&d.Limits, f.me.Fault)
	missing(&d.Resources, f.resources.Fault)
	missing(&d.Denied, f.denied.Fault)
	if !f.me.OK() {
		d.Facts = []fact{{"Unavailable", textCell(f.me.Fault)}}
	}
	return d
}

// missing explains why a table is empty. It does nothing if fault is "".
func missing(t *table, fault string) {
	if fault != "" {
		t.Empty = empty{Icon: "alert", Title: "Unavailable", Text: fault}
	}
}

// myIdentity describes the caller.
func myIdentity(v *visit, me *selfservice.Me) []fact {
	facts := []fact{{"Key", textCell(me.Key)}}
	if me.Subject != "" {
		facts = append(facts, fact{"Signed in as", textCell(me.Subject)})
	}
	facts = append(facts, fact{"Organisation", textCell(me.Org)}, fact{"Team", textCell(cmp.Or(me.Team, "–"))},
		fact{"Roles", textCell(strings.Join(me.Roles, ", "))})
	if me.Until != nil {
		facts = append(facts, fact{"Expires", v.whenCell(me.Until)})
	}
	if g := me.Grants; g != nil {
		facts = append(facts, fact{"May approve", textCell(mayApprove(g))})
	}
	return facts
}

// mayApprove describes the limits of a lead's approvals.
func mayApprove(g *selfservice.Grants) string {
	var limits []string
	if decimal(g.PerHour) > 0 {
		limits = append(limits, "requests up to "+amount(g.PerHour)+" per hour")
	}
	if decimal(g.PerRun) > 0 {
		limits = append(limits, "runs up to "+amount(g.PerRun)+" each")
	}
	return upper(cmp.Or(strings.Join(limits, ", "), "no limit is set"))
}

// ownBudgetRows returns the budgets of a caller as the operators' pages show them.
func ownBudgetRows(list []selfservice.Budget) (out []money.BudgetRow) {
	for i := range list {
		b := &list[i]
		kind, id, _ := strings.Cut(b.Scope, " ")
		out = append(out, money.BudgetRow{
			Scope: b.Scope, Kind: kind, ID: id, UsedUpAt: b.UsedUpAt, Forecast: b.Forecast, Ends: b.Ends, Free: b.Free,
			Budget: money.Budget{Name: b.Name, Limit: b.Limit, Used: b.Used, Reserved: b.Reserved, Left: b.Left, UsedUp: b.UsedUp},
		})
	}
	return out
}

// myMonth shows the cost this month compared with the first monthly budget, or nil without such a budget.
func myMonth(v *visit, list []money.BudgetRow) *tile {
	i := slices.IndexFunc(list, func(b money.BudgetRow) bool { return b.Name == "per_month" && b.Left != "" })
	if i < 0 {
		return nil
	}
	b := &list[i]
	t := &tile{Label: "Month to date, " + b.Scope, Value: amount(b.Used), Path: v.Link("cost", "range", monthToDate)}
	t.budget(v, b)
	return t
}

// myTiles returns tiles for the hourly cost of the caller's resources, the cost of idle resources, pending approval requests and denied
// requests.
func myTiles(v *visit, f *myFacts) []tile {
	var rate, waste float64
	var idle, pending int
	for i := range f.resources.Is.Resources {
		r := &f.resources.Is.Resources[i]
		rate += decimal(r.Takes.PerHour)
		if r.Idle != nil && r.Idle.SnoozedUntil == nil {
			idle++
			waste += decimal(r.Idle.PerMonth)
		}
	}
	for i := range f.requests.Is.Approvals {
		if f.requests.Is.Approvals[i].State == approval.Pending {
			pending++
		}
	}
	denied := strconv.Itoa(len(f.denied.Is.Decisions))
	if len(f.denied.Is.Decisions) == countedDenials {
		denied += "+"
	}
	tiles := []tile{
		{
			Label: "Burn rate now", Value: usdOf(rate), Unit: "per hour", Note: plural(len(f.resources.Is.Resources), "resource"),
			Path: v.Link("resources"), Fault: f.resources.Fault,
		},
		{
			Label: "Idle", Value: usdOf(waste), Unit: "per month", Note: plural(idle, "idle resource"),
			Path: v.Link("resources"), Fault: f.resources.Fault,
		},
		{
			Label: "Pending approvals", Value: strconv.Itoa(pending), Note: plural(len(f.requests.Is.Approvals), "recent request"),
			Path: v.Link("approvals"), Fault: f.requests.Fault,
		},
		{
			Label: "Denied, 7 days", Value: denied, Note: "requests of " + ownSubject(v),
			Path: v.Link("requests", "refused", "true", "range", last7Days), Fault: f.denied.Fault,
		},
	}
	if t := myMonth(v, ownBudgetRows(f.me.Is.Budgets)); t != nil && waste == 0 {
		tiles[1] = *t
	}
	return tiles
}

// ownSubject describes the owner of the records that the caller sees.
func ownSubject(v *visit) string {
	if v.session.Lead {
		return "your team"
	}
	return "your key"
}

// myAttention lists pending approval requests, budgets near their limit, and the caller's idle resources.
func myAttention(v *visit, f *myFacts) (a attention) {
	a.Unknown = !f.me.OK() || !f.requests.OK() || !f.resources.OK()
	a.Kinds = "Budgets that run out or are near their limit, pending approvals and idle resources"
	budgets := ownBudgetRows(f.me.Is.Budgets)
	for _, b := range willRunOut(budgets) {
		a.Items = append(a.Items, budgetItem(v, b, v.Link("cost", "range", monthToDate)))
	}
	for i := range f.requests.Is.Approvals {
		if r := &f.requests.Is.Approvals[i]; r.State == approval.Pending {
			a.Items = append(a.Items, ownApprovalItem(v, r, budgets))
		}
	}
	for i := range budgets {
		b := &budgets[i]
		if used := budgetBar(b); b.Left != "" && used.Level != levelGood && (b.UsedUp == "" || b.Ends == nil) {
			a.Items = append(a.Items, item{
				Level: used.Level, Icon: "wallet", Path: v.Link("cost", "range", monthToDate),
				Title: title(b.Scope) + ": budget " + words(b.Name) + " is " + strconv.Itoa(used.Percent) + "% used or reserved",
				Text:  takenText(b) + ", " + budgetAmount(b.Name, b.Left) + " remaining",
			})
		}
	}
	for i := range f.resources.Is.Resources {
		r := &f.resources.Is.Resources[i]
		if r.Idle == nil || r.Idle.SnoozedUntil != nil {
			continue
		}
		a.Items = append(a.Items, item{
			Level: levelInfo, Icon: "moon", Title: cmp.Or(r.Name, r.ID) + " is idle", Path: v.Link("resources"), Text: idleText(v, r.Idle),
			Forms: ownActions(v, r),
		})
	}
	a.shorten()
	return a
}

// ownApprovalItem returns the entry of an approval request, with forms if the caller may resolve it. A request without a price is approved on the
// Approvals page, with a cost limit.
func ownApprovalItem(v *visit, r *selfservice.Request, budgets []money.BudgetRow) item {
	x := item{Level: levelWarn, Icon: "inbox", Title: cmp.Or(readable(r.Summary), r.Operation), Path: v.Link("approvals") + "#" + r.ID, When: new(v.When(r.Until))}
	var by []string
	for _, refusal := range r.Refusals {
		by = append(by, refusal.By)
	}
	x.Text = "Requested by " + r.Key + deniedBy(by) + approvedFor(r.USD, string(r.Per))
	if !r.MayGrant && !r.MayDeny {
		x.Title, x.Text = x.Title+" waits for approval", "By a lead of the team or an operator"+deniedBy(by)
	}
	x.effect(v, effectsOf(v, budgets, r.Team, r.Key, r.USD, r.Per))
	x.Text += " · request expires "
	if r.MayGrant && r.USD != "" {
		f := v.post("approvals/grant", r.ID, "Approve")
		f.Main = true
		x.Forms = append(x.Forms, f)
	}
	if r.MayDeny {
		x.Forms = append(x.Forms, v.post("approvals/deny", r.ID, "Deny"))
	}
	return x
}

// ownBudgets lists the budgets that apply to a caller.
func ownBudgets(v *visit, list []money.BudgetRow) table {
	columns := budgetColumns(v)
	return newTable(v, list, tableSpec[money.BudgetRow]{
		Name: "budgets", Caption: "Budgets that apply to you",
		Columns: slices.Insert(columns, len(columns)-1, forecastColumn()),
		Empty: empty{
			Icon: "wallet", Title: "No budgets",
			Text: "No budget applies to you. Budgets of your key, team and organisation appear here, with the remaining amounts.",
		},
	})
}

// ownLimits lists the rate limits of a caller.
func ownLimits(v *visit, list []reference.Limit) table {
	return newTable(v, list, tableSpec[reference.Limit]{
		Name: "limits", Caption: "Rate limits that apply to you",
		Columns: []column[reference.Limit]{
			{Title: "Scope", Cell: func(l *reference.Limit) cell {
				return textCell(title(strings.Replace(l.Scope, ":", " ", 1)), "per "+l.Window)
			}},
			{Title: "Remaining", Number: true, Cell: func(l *reference.Limit) cell {
				if l.Remaining == nil {
					return textCell("Unknown")
				}
				return textCell(count(*l.Remaining), "of "+count(l.Limit))
			}},
			{
				Title: "Resets in", Number: true,
				Value: func(l *reference.Limit) any { return lasting(time.Duration(l.ResetSeconds) * time.Second) },
			},
		},
		Empty: empty{Icon: "gauge", Title: "No rate limits", Text: "Your requests are not limited."},
	})
}

// ownDenied lists denied requests with their reasons.
func ownDenied(v *visit, list []explain.Summary) table {
	return newTable(v, list, tableSpec[explain.Summary]{
		Name: "denied", Caption: "Latest denied requests",
		Path: func(s *explain.Summary) string { return v.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Columns: []column[explain.Summary]{
			{Title: "Request", Cell: func(s *explain.Summary) cell { return textCell(s.Operation, s.Key) }},
			{Title: "Reason", Cell: reasonCell},
			{Title: "Time", Cell: func(s *explain.Summary) cell { return v.exactCell(s.Time) }},
		},
		Empty: empty{
			Icon: "check", Title: "No denials in the last 7 days",
			Text: "Denied requests appear here, with the reason and the change that would let them pass.",
		},
	})
}

// ownResourceTable lists the resources of a caller.
func ownResourceTable(v *visit, list []selfservice.Resource) table {
	return newTable(v, list, tableSpec[selfservice.Resource]{
		Name: "resources", Caption: "Your resources", Whole: true,
		Columns: []column[selfservice.Resource]{
			{
				Key: "resource", Title: "Resource", Sort: true, Value: func(r *selfservice.Resource) any { return cmp.Or(r.Name, r.ID) },
				Cell: func(r *selfservice.Resource) cell { return resourceCell(r.Name, r.ID, r.Kind) },
			},
			{Key: "state", Title: "State", Cell: func(r *selfservice.Resource) cell { return stateCell(v, &r.Resource, r.Idle) }},
			{Key: "key", Title: "Key", Value: func(r *selfservice.Resource) any { return r.Key }},
			{Key: "gpu", Title: "GPU", Cell: func(r *selfservice.Resource) cell { return textCell(r.GPU, present(r.DataCenter)...) }},
			{Key: "hour", Title: "Per hour", Sort: true, Number: true, Value: func(r *selfservice.Resource) any { return dollars(r.Takes.PerHour) }},
			{
				Key: "month", Title: "Per month", Number: true, Off: true,
				Value: func(r *selfservice.Resource) any { return usdOf(decimal(r.Takes.PerHour) * hoursPerMonth) },
			},
			{Key: "since", Title: "Created", Sort: true, Value: func(r *selfservice.Resource) any { return r.Since }},
			{Title: "Actions", Cell: func(r *selfservice.Resource) cell {
				c := cell{Menu: "Actions", Forms: ownActions(v, r)}
				if r.Decision != "" {
					c.Links = []button{{Title: "Creating request", Path: v.Link("requests/" + url.PathEscape(r.Decision))}}
				}
				return c
			}},
		},
		Empty: empty{
			Icon: "server", Title: "No resources",
			Text: "Pods, endpoints and volumes that you create appear here, with their cost. Create one:", Code: firstCall(),
		},
	})
}

// ownActions returns the forms that stop a pod and snooze an idle resource.
func ownActions(v *visit, r *selfservice.Resource) (out []form) {
	if r.Idle != nil {
		out = append(out, v.post("resources/snooze", r.ID, "Snooze",
			field{
				Name: "for", Label: "Snooze for", Type: "select",
				Options: []option{{"24h", "1 day", true}, {"72h", "3 days", false}, {"168h", "1 week", false}},
			}))
	}
	if r.Kind == "pod" && decimal(r.Takes.PerHour) > 0 {
		stop := v.post("resources/stop", r.ID, "Stop")
		stop.Icon, stop.Danger = "stop", true
		out = append(out, stop)
	}
	return out
}

func myResources(v *visit) (any, int, string) {
	list := own[selfservice.ResourceList](v, "resources", nil)
	l := listing{Table: ownResourceTable(v, list.Is.Resources)}
	if list.OK() && !list.Is.Complete {
		l.Notes = []note{{levelBad, "The ledger is incomplete: some resources may be missing."}}
	}
	rate := 0.0
	for i := range list.Is.Resources {
		rate += decimal(list.Is.Resources[i].Takes.PerHour)
	}
	l.Table.Shown = strings.Join(append(present(l.Table.Shown), plural(len(list.Is.Resources), "resource"), usdOf(rate)+" per hour"), ", ")
	l.Text = "Resources of your key that count against budgets."
	if v.session.Lead {
		l.Text = "Resources of your team that count against budgets."
	}
	return l, list.Status, list.Fault
}

func myDecisions(v *visit) (any, int, string) {
	list := own[decisions.List](v, "decisions", v.requestRange(v.given("refused", "operation", "limit", "before")))
	return ownRequests(v, &list.Is), list.Status, list.Fault
}

// ownRequests returns the page that lists a caller's requests.
func ownRequests(v *visit, list *decisions.List) listing {
	l := v.filtered(field{Name: "operation", Label: "Operation"}, field{Name: "refused", Label: "Denied only", Type: "checkbox"})
	l.olderChip(v)
	if list.Incomplete != "" {
		l.Notes = []note{{levelWarn, incomplete(list)}}
	}
	l.Table = newTable(v, list.Decisions, tableSpec[explain.Summary]{
		Name: "requests", Caption: "Your requests, newest first", Next: v.older("before", list.Next),
		Path: func(s *explain.Summary) string { return v.Link("requests/" + url.PathEscape(s.DecisionID)) },
		Columns: []column[explain.Summary]{
			{Key: "operation", Title: "Request", Cell: func(s *explain.Summary) cell { return textCell(s.Operation, s.Dialect) }},
			{Key: "outcome", Title: "Outcome", Cell: func(s *explain.Summary) cell { return statusCell(string(s.Verdict)) }},
			{Key: "key", Title: "Key", Value: func(s *explain.Summary) any { return s.Key }},
			{Key: "status", Title: "Status", Number: true, Value: func(s *explain.Summary) any { return statusCode(s.Status) }},
			{Key: "reason", Title: "Reason", Cell: reasonCell},
			{Key: "time", Title: "Time", Cell: func(s *explain.Summary) cell { return v.exactCell(s.Time) }},
		},
		Empty: l.empty(v, empty{
			Icon: "list", Title: "No requests in this period",
			Text: "Requests that you make with your key appear here, but not views of these pages. Choose a longer time range, or send a request:",
			Code: firstCall(),
		}),
	})
	l.searchOlder()
	return l
}

// statusCode formats an HTTP status, or returns "" for 0.
func statusCode(status int) string {
	if status == 0 {
		return ""
	}
	return strconv.Itoa(status)
}
