package ui

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// keyList returns the page that lists an organisation's keys.
func keyList(v *visit, list *callers.List) listing {
	l := v.filtered(
		field{Name: "search", Label: "Name, team or owner", Type: "search"},
		field{Name: "team", Label: "Team", Type: "select", Options: names("All teams", v.Teams(), "")},
		field{
			Name: "state", Label: "State", Type: "select",
			Options: []option{
				{"", "All states", false},
				{"in force", "Active", false},
				{"not in force", "Inactive", false},
				{"expired", "Expired", false},
				{"revoked", "Revoked", false},
			},
		},
	)
	if v.may(createKey) {
		l.Actions = []button{{Title: "Create key", Icon: "plus", Path: v.Link("create-key"), Main: true}}
	}
	l.Table = newTable(v, list.Keys, tableSpec[callers.Key]{
		Name: "keys", Caption: "Keys of " + v.org, Columns: []column[callers.Key]{
			{Key: "key", Title: "Key", Param: "id", Cell: func(k *callers.Key) cell { return textCell(k.ID, cmp.Or(k.Owner, "No owner")) }},
			{Key: "state", Title: "State", Cell: func(k *callers.Key) cell { return statusCell(k.State) }},
			{Key: "team", Title: "Team", Value: func(k *callers.Key) any { return k.Team }},
			{Key: "roles", Title: "Roles", Value: func(k *callers.Key) any { return joined(k.Roles) }},
			{
				Key: "used", Title: "Last used", Param: "used", Down: true,
				Cell: func(k *callers.Key) cell { return v.whenOr(k.Used, "No recent use") },
			},
			{Key: "today", Title: "Today", Off: true, Number: true, Value: func(k *callers.Key) any { return dollars(cmp.Or(k.Today, "0")) }},
			{
				Key: "month", Title: "Month to date", Param: "spend", Number: true,
				Value: func(k *callers.Key) any { return dollars(cmp.Or(k.ThisMonth, "0")) },
			},
			{Key: "expires", Title: "Expires", Param: "expires", Cell: func(k *callers.Key) cell { return v.whenOr(k.Expires, "Never") }},
			{Key: "limits", Title: "Rate limits", Off: true, Cell: func(k *callers.Key) cell { return cell{Lines: limitLines(k.Limits)} }},
			{Key: "budget", Title: "Budgets", Off: true, Cell: func(k *callers.Key) cell { return cell{Lines: budgetLines(k.Budget)} }},
			{Key: "created", Title: "Created", Off: true, Cell: func(k *callers.Key) cell { return v.createdCell(&k.KeyRecord) }},
		},
		Path:  func(k *callers.Key) string { return v.Link("keys/" + url.PathEscape(k.ID)) },
		Muted: func(k *callers.Key) bool { return k.State != "in force" }, Next: v.older("cursor", list.Next),
		Prev: v.newest("cursor"), Empty: l.empty(v, noKeys(v)),
	})
	l.Table.Shown = plural(list.All, "key")
	return l
}

// noKeys returns the empty state of the key list.
func noKeys(v *visit) empty {
	return empty{
		Icon: "key", Title: "No keys yet", Text: "Callers authenticate with a key. Create one here, or on the command line:",
		Code: &code{"command that creates a key", "tollgate keys create " + cmp.Or(v.org, "ORG") + "/batch --team TEAM"},
	}
}

// createdCell shows the creation time of a key and its creator.
func (v *visit) createdCell(k *settings.KeyRecord) cell {
	if k.Created.IsZero() {
		return textCell("Configuration")
	}
	c := v.whenCell(k.Created)
	if c.Sub = operatorName(k.By); c.Sub == k.By {
		c.Sub = "by " + k.By
	}
	return c
}

// limitLines formats quotas, the shortest window first.
func limitLines(limits map[string]int64) (out []string) {
	order := []string{"second", "minute", "hour", "day"}
	windows := slices.Collect(maps.Keys(limits))
	slices.SortFunc(windows, func(a, b string) int {
		return cmp.Or(slices.Index(order, a)-slices.Index(order, b), strings.Compare(a, b))
	})
	for _, w := range windows {
		out = append(out, count(limits[w])+" per "+w)
	}
	return out
}

// budgetLines formats the budgets of a key.
func budgetLines(budget map[string]any) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(budget)) {
		out = append(out, words(name)+" "+fmt.Sprint(budget[name]))
	}
	return out
}

// keyData holds the data of a key's page.
type keyData struct {
	head
	callers.Key

	Facts []fact
	// Rotate and Revoke are the forms for these actions, or nil if the principal lacks the permission.
	Rotate, Revoke *form
}

func keyPage(v *visit) (any, int, string) {
	id := v.r.PathValue("id")
	list := ask[callers.List](v, keyRow, url.Values{"search": {id}, "limit": {"1000"}})
	if !list.OK() {
		return nil, list.Status, list.Fault
	}
	i := slices.IndexFunc(list.Is.Keys, func(k callers.Key) bool { return k.ID == id })
	if i < 0 {
		return nil, http.StatusNotFound, "no key of " + v.org + " is called " + strconv.Quote(id)
	}
	return newKeyData(v, list.Is.Keys[i]), 0, ""
}

func newKeyData(v *visit, k callers.Key) keyData {
	d := keyData{Key: k, Facts: keyFacts(v, &k), head: head{Title: k.ID, Badge: new(statusOf(k.State)), Parents: v.parents("Keys", "keys")}}
	d.Actions = []button{
		{Title: "Requests", Icon: "list", Path: v.Link("requests", "key", k.ID)},
		{Title: "Cost", Icon: "chart", Path: v.Link("cost", "key", k.ID, "by", "gpu")},
	}
	if v.may(rotateKey) && !k.Created.IsZero() && k.Revoked.IsZero() {
		if k.State != "expired" {
			d.Rotate = new(v.post("keys/rotate", k.ID, "Rotate", field{
				Name: "overlap", Label: "Old secret expires", Type: "select",
				Options: []option{{"0s", "Now", false}, {"1h", "In 1 hour", false}, {"24h", "In 24 hours", true}, {"168h", "In 7 days", false}},
			}))
		}
		d.Revoke = new(v.post("keys/revoke", k.ID, "Revoke"))
		d.Revoke.Danger = true
	}
	return d
}

func keyFacts(v *visit, k *callers.Key) []fact {
	facts := []fact{
		{"Owner", textCell(cmp.Or(k.Owner, "–"))},
		{"Team", linkCell(cmp.Or(k.Team, "None"), v.Link("keys", "team", k.Team))},
		{"Roles", textCell(cmp.Or(joined(k.Roles), "–"))},
		{"Last used", v.whenOr(k.Used, "No recent use")},
		{"Expires", v.whenOr(k.Expires, "Never")},
		{"Created", v.createdCell(&k.KeyRecord)},
		{"Cost today", textCell(amount(cmp.Or(k.Today, "0")))},
		{"Month to date", textCell(amount(cmp.Or(k.ThisMonth, "0")))},
		{"Rate limits", cell{Lines: slices.Concat(limitLines(k.Limits), none(len(k.Limits), "rate limits"))}},
		{"Budgets", cell{Lines: slices.Concat(budgetLines(k.Budget), none(len(k.Budget), "budgets"))}},
	}
	if !k.Revoked.IsZero() {
		revoked := v.whenCell(k.Revoked)
		revoked.Sub = "by " + k.RevokedBy
		facts = append(facts, fact{"Revoked", revoked})
	}
	return facts
}

// none returns a text which says that a key has no rate limits or budgets of its own, or nil if n is not 0.
func none(n int, what string) []string {
	if n > 0 {
		return nil
	}
	return []string{"None for this key: the " + what + " of its team and the organisation apply"}
}

// whenOr returns a cell with the time t, or with the text otherwise if t is zero.
func (v *visit) whenOr(t any, otherwise string) cell {
	if c := v.whenCell(t); c.When != nil {
		return c
	}
	return textCell(otherwise)
}

// newKeyForm holds the data of the page that creates a key.
type newKeyForm struct {
	head

	Form form
}

// fieldGroup is a part of a form with a heading.
type fieldGroup struct {
	Title, Hint string
	Fields      []field
}

// Groups returns the fields of the form by subject.
func (d newKeyForm) Groups() []fieldGroup {
	groups := []fieldGroup{
		{Title: "Key"},
		{Title: "Roles", Hint: "By default, viewers can read, and operators can also create, change and delete resources and run jobs. Admins can do everything " +
			"(see the policy roles). Leads can also answer approval requests and create keys for their team. A key without a role has the role operator."},
		{Title: "Rate limits"},
		{Title: "Budgets"},
	}
	for i := range d.Form.Fields {
		x := d.Form.Fields[i]
		kind, _, _ := strings.Cut(x.Name, ".")
		g := &groups[max(0, slices.Index([]string{"", "roles", "limit", "budget"}, kind))]
		g.Fields = append(g.Fields, x)
	}
	return groups
}

func newKey(v *visit) (any, int, string) {
	if !v.may(createKey) {
		return nil, http.StatusForbidden, "only an admin can create keys"
	}
	return v.newKeyForm(v.Teams(), "viewer", "operator", "admin", "lead"), 0, ""
}

// newKeyForm returns the page that creates a key with a team and roles from the given lists. Its form has no team field if teams is empty.
func (v *visit) newKeyForm(teams []string, roles ...string) newKeyForm {
	fields := []field{{Name: "id", Label: "Name", Required: true, Max: 64}}
	if len(teams) > 0 {
		fields = append(fields, field{Name: "team", Label: "Team", Type: "select", Options: names("No team", teams, "")})
	}
	fields = append(fields,
		field{Name: "owner", Label: "Owner", Max: 200, Placeholder: "person@example.com"},
		field{Name: "expires", Label: "Expires (00:00 UTC)", Type: "date", Hint: "Empty: never"},
		field{Name: "roles", Label: "Roles", Type: "checks", Options: options(roles)},
	)
	for _, w := range []string{"minute", "hour", "day"} {
		fields = append(fields, field{Name: "limit." + w, Label: "Requests per " + w, Type: "number", Placeholder: "No limit of its own"})
	}
	for _, b := range []string{"per_hour", "per_day", "per_week", "per_month", "per_quarter", "total"} {
		fields = append(fields, field{
			Name: "budget." + b, Label: upper(words(b)) + ", USD", Type: "number",
			Placeholder: "No limit of its own",
		})
	}
	f := v.post("keys/create", "", "Create key", fields...)
	f.Main = true
	return newKeyForm{head{Text: "The secret is shown once, when the key is created.", Parents: v.parents("Keys", "keys")}, f}
}

// changeList returns the page of the audit log.
func changeList(v *visit, p *audit.Page) listing {
	l := v.filtered(
		field{Name: "by", Label: "Key or operator"}, field{Name: "operation", Label: "Operation"},
		field{Name: "resource", Label: "Resource ID or name"},
		field{Name: "reads", Label: "Show", Type: "select", Options: []option{{"", "Changes", false}, {"true", "Reads by operators", false}}},
	)
	for i := range p.Changes {
		c := &p.Changes[i]
		l.Filters.Fields[0].suggest(c.Key, c.Who)
		l.Filters.Fields[1].suggest(c.Operation)
		l.Filters.Fields[2].suggest(c.Resource, c.Name)
	}
	l.Text = "Changes with their authors and results, newest first. Each gateway writes its own audit log. This list is from the gateway that serves this page."
	if p.Incomplete != "" {
		l.Notes = append(l.Notes, note{levelInfo, p.Incomplete})
	}
	next := ""
	if p.Next > 0 {
		next = strconv.FormatInt(p.Next, 10)
	}
	l.Table = newTable(v, p.Changes, tableSpec[audit.Change]{
		Name: "audit", Caption: "Changes in " + v.org + ", newest first", Columns: []column[audit.Change]{
			{Key: "time", Title: "Time", Cell: func(c *audit.Change) cell { return v.exactCell(c.Time) }},
			{Key: "by", Title: "By", Cell: func(c *audit.Change) cell {
				return textCell(cmp.Or(callerText(c.Key, c.Team), actor(c)), present(c.Subject)...)
			}},
			{Key: "action", Title: "Action", Cell: func(c *audit.Change) cell { return actionCell(v, c) }},
			{Key: "resource", Title: "Resource", Cell: func(c *audit.Change) cell {
				out := textCell(cmp.Or(c.Name, c.Resource), present(resourceID(c), c.Labels)...)
				out.Path = subjectPath(v, c)
				return out
			}},
			{
				Key: "operation", Title: "Operation", Off: true,
				Cell: func(c *audit.Change) cell { return textCell(c.Operation, present(c.Query)...) },
			},
			{Key: "address", Title: "Address", Off: true, Value: func(c *audit.Change) any { return c.Peer }},
			{Key: "cost", Title: "Cost per hour", Off: true, Number: true, Value: func(c *audit.Change) any { return dollars(c.PerHour.String()) }},
			{Key: "result", Title: "Result", Cell: func(c *audit.Change) cell { return resultCell(c) }},
			{Key: "request", Title: "Request", Cell: func(c *audit.Change) cell {
				if c.Decision == "" {
					return cell{}
				}
				return linkCell("Details", v.Link("requests/"+url.PathEscape(c.Decision)))
			}},
			{Key: "number", Title: "Number", Off: true, Number: true, Value: func(c *audit.Change) any { return c.Seq }},
		},
		Next: v.older("before", next), Prev: v.newest("before"),
		Empty: l.empty(v, empty{
			Icon: "book", Title: "No changes in this period",
			Text: "Changes appear here with the key or operator that made them. Choose a longer time range to see older changes.",
		}),
	})
	return l
}

// subjectPath returns the address of the page of a change's subject, or "".
func subjectPath(v *visit, c *audit.Change) string {
	switch {
	case c.Resource == "":
		return ""
	case c.Kind == "approval":
		return approvalPath(v, c.Resource)
	case c.Kind == "key":
		return v.Link("keys/" + url.PathEscape(c.Resource))
	}
	return v.Link("resources/" + url.PathEscape(c.Resource))
}

// resourceID returns the ID of a resource that also has a name.
func resourceID(c *audit.Change) string {
	if c.Name == "" {
		return ""
	}
	return c.Resource
}

// resultCell shows the status of a change and the outcome of its call to the platform.
func resultCell(c *audit.Change) cell {
	s := status{levelGood, "Done"}
	switch {
	case c.Status == 0 && c.Ended.IsZero():
		s = status{levelWarn, "In progress"}
	case c.Status >= http.StatusBadRequest:
		s = status{levelBad, "Failed, " + strconv.Itoa(c.Status)}
	}
	carried := c.Carried
	if carried == "answered" {
		carried = "" // the usual outcome is omitted
	}
	return cell{Status: &s, Sub: carried}
}

// present returns the non-empty texts.
func present(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}
