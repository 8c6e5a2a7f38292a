package ui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

// requestData holds the data of a request's page.
type requestData struct {
	explain.Report

	// Pending is the approval request of a denied request, or nil. Expired reports that the approval request has expired.
	Pending *approval.Record
	Expired bool
	// Sent is the body of a dry run.
	Sent string
}

func loadRequest(v *visit) (any, int, string) {
	x := ask[explain.Report](v, decisionRow, url.Values{"id": {v.r.PathValue("id")}})
	if !x.OK() {
		return nil, x.Status, x.Fault
	}
	return v.described(&x.Is), 0, ""
}

// described returns the data of a report's page, with the approval request.
func (v *visit) described(x *explain.Report) requestData {
	d := requestData{Report: *x}
	if d.Approval != "" {
		list := ask[approval.List](v, approvalList, url.Values{"org": {d.Caller.Org}})
		i := slices.IndexFunc(list.Is.Approvals, func(r approval.Record) bool { return r.ID == d.Approval })
		if d.Expired = list.OK() && i < 0; i >= 0 {
			d.Pending = &list.Is.Approvals[i]
		}
	}
	return d
}

// Head returns the header: the operation with its outcome, and links to run the request as a dry run and to test a policy on it.
func (d requestData) Head(f *frame) head {
	s := d.Summary()
	h := head{Title: operationName(d.Operation), Badge: outcomeCell(&s).Status, Parents: f.parents("Requests", "requests")}
	h.Text = strings.TrimSpace(d.Method + " " + d.Path)
	if d.Own != nil {
		return h
	}
	if d.Pending != nil && f.isPending(d.Pending) {
		h.Actions = append(h.Actions, button{Title: "Review approval", Icon: "inbox", Path: f.Link("approvals") + "#" + d.Approval, Main: true})
	}
	if f.may(explainRow) {
		h.Actions = append(h.Actions, d.dryRun(f))
	}
	if f.may(tryRow) {
		h.Actions = append(h.Actions, button{
			Title: "Test a policy on this request", Icon: "flask",
			Path: f.Link("playground", "decision", d.DecisionID),
		})
	}
	return h
}

// dryRun returns the button that leads to the dry run form with the known parts of the request. If they are too long for an address, the
// button submits them.
func (d requestData) dryRun(f *frame) button {
	b := button{
		Title: "Run as dry run", Icon: "play",
		Path: f.Link("dry-run", "key", d.Caller.Key, "method", d.Method, "path", d.Path, "body", d.body()),
	}
	if len(b.Path) > maxAddress {
		b.Path, b.Post = "", f.path+"dry-run"
		b.Hidden = []hiddenField{{"org", f.org}, {"key", d.Caller.Key}, {"method", d.Method}, {"path", d.Path}, {"body", d.body()}}
	}
	return b
}

// body returns the request body if it is stored with an approval request, or "" otherwise.
func (d requestData) body() string {
	if d.Sent != "" {
		return d.Sent
	}
	if d.Pending == nil || len(d.Pending.Body) == 0 {
		return ""
	}
	return pretty(d.Pending.Body)
}

// maxAddress is the maximum length of an address, in bytes. Servers and proxies accept addresses of about 8 KiB.
const maxAddress = 6000

// Facts returns the details of the request.
func (d requestData) Facts(f *frame) []fact {
	const callerID = "X-Request-ID" // the caller's own ID, if it sent one
	s := d.Summary()
	out := []fact{
		{"Time", f.exactCell(d.Time)},
		{"Status", textCell(statusCode(d.Status), words(d.Refusal))},
		{"Latency", textCell(cmp.Or(millis(d.DurationMs), "–"), platformTime(d.PlatformMs))},
		{"Price", textCell(cmp.Or(perHour(s.USDPerHour), "–"))},
		{"Key", linkCell(d.Caller.Key, f.Link("keys/"+url.PathEscape(d.Caller.Key)))},
		{"Team", linkCell(d.Caller.Team, f.Link("requests", "team", d.Caller.Team))},
		{"Roles", textCell(strings.Join(d.Caller.Roles, ", "))},
		{"Resource", cell{Text: s.Resource, Code: true, Path: f.Link("resources/" + url.PathEscape(s.Resource))}},
		{"API", textCell(cmp.Or(dialectName(d.Dialect), d.Dialect))},
		{"Request ID", codeCell(d.DecisionID)},
		{callerID, codeCell(d.RequestID)},
		{"Configuration", codeCell(short(d.Revision))},
	}
	switch d.DecisionID {
	case "": // a dry run, which was not sent
		out = slices.DeleteFunc(out, func(x fact) bool { return x.Label == "Time" || x.Label == "Latency" })
	case d.RequestID:
		out = slices.DeleteFunc(out, func(x fact) bool { return x.Label == callerID })
	}
	return slices.DeleteFunc(out, func(x fact) bool { return x.Text == "" && x.When == nil })
}

// platformTime describes the platform's share of a latency.
func platformTime(ms float64) string {
	if ms == 0 {
		return ""
	}
	return millis(ms) + " waiting for the platform"
}

// perHour formats an hourly price. It returns "" for an empty price.
func perHour(usd string) string {
	if usd == "" {
		return ""
	}
	return amount(usd) + " per hour"
}

// Related returns links to related requests and to the pages of the objects that the request refers to.
func (d requestData) Related(f *frame) (out []link) {
	if d.Caller.Key != "" {
		out = append(out, link{Title: "Requests of key " + d.Caller.Key, Path: f.Link("requests", "key", d.Caller.Key)})
	}
	out = append(out, link{Title: "Requests to " + operationName(d.Operation), Path: f.Link("requests", "operation", d.Operation)})
	if s := d.Summary(); s.Resource != "" {
		out = append(out, link{Title: "Requests about " + s.Resource, Path: f.Link("requests", "resource", s.Resource)})
	}
	if d.Approval != "" && f.may(approvalList) {
		out = append(out, link{Title: "Approval request", Path: approvalPath(f.visit, d.Approval)})
	}
	return out
}

// Curl returns a curl command that sends the request. The command reads the caller's key from an environment variable. If the gateway did
// not store the body of the request, the command reads the body from a file.
func (d requestData) Curl() *code {
	if d.Own != nil || d.Method == "" || d.Path == "" {
		return nil
	}
	var b strings.Builder
	if d.Method != http.MethodGet {
		fmt.Fprintf(&b, "curl -X %s ", d.Method)
	} else {
		b.WriteString("curl ")
	}
	at := `"$TOLLGATE_URL"` + quoted(d.Path)
	if plainPath.MatchString(d.Path) {
		at = `"$TOLLGATE_URL` + d.Path + `"`
	}
	fmt.Fprintf(&b, "%s \\\n  -H \"Authorization: Bearer $TOLLGATE_KEY\"", at)
	switch body := d.body(); {
	case body != "":
		b.WriteString(" \\\n  --json " + quoted(compact(body)))
	case d.Method != http.MethodGet && d.Method != http.MethodDelete:
		b.WriteString(" \\\n  --json @body.json")
	}
	return &code{"curl command", b.String()}
}

// BodyFile reports whether a curl command reads the body from a file, because the body is not stored.
func (c *code) BodyFile() bool { return strings.HasSuffix(c.Text, " @body.json") }

// plainPath matches paths that need no quoting within double quotes in a shell.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/_.~?=&%:,-]+$`)

// quoted quotes a text as a single shell word.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// compact formats JSON on one line.
func compact(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	out, _ := json.Marshal(v) // the value was decoded from JSON
	return string(out)
}

// Sections returns the request and the platform calls that resulted from it. A request for the current API has a single section.
func (d requestData) Sections() []callSection {
	first := callSection{Stages: d.Stages}
	if len(d.Calls) == 1 && d.Calls[0].Path == d.Path {
		first.Call, first.Stages = &d.Calls[0], slices.Concat(d.Stages, d.Calls[0].Stages)
		for i := range first.Stages {
			x := &first.Stages[i]
			if x.Name == "dispatch" && d.PlatformMs > 0 {
				x.Notes = append(slices.Clone(x.Notes), "of which "+platformTime(d.PlatformMs))
			}
		}
		return []callSection{first}
	}
	out := []callSection{first}
	for i := range d.Calls {
		out = append(out, callSection{Title: "Call " + d.Calls[i].Operation, Call: &d.Calls[i], Stages: d.Calls[i].Stages})
	}
	return out
}

// callSection is a section of the page: the results of policies and budgets for one call, and the stages.
type callSection struct {
	// Title is empty for the request itself.
	Title  string
	Call   *explain.Call
	Stages []explain.Stage
}

// Policies returns the results of policies.
func (s callSection) Policies(f *frame) table {
	if s.Call == nil {
		return table{}
	}
	return newTable(f.visit, s.Call.Policies, tableSpec[explain.Policy]{
		Name: "results", Caption: "Results of policies", Columns: []column[explain.Policy]{
			{Title: "Policy", Value: func(p *explain.Policy) any { return p.Policy }},
			{Title: "Result", Cell: func(p *explain.Policy) cell { return statusCell(p.Verdict) }},
			{Title: "Message", Value: func(p *explain.Policy) any { return p.Message }},
			{Title: "Field", Cell: func(p *explain.Policy) cell { return codeCell(memberName(p.Field)) }},
		},
		Path: func(p *explain.Policy) string { return f.Link("policies/" + url.PathEscape(p.Policy)) },
	})
}

// Budgets returns the budgets with their amounts before and after the call.
func (s callSection) Budgets(f *frame) table {
	if s.Call == nil || !slices.ContainsFunc(s.Call.Budgets, func(b explain.BudgetCheck) bool { return decimal(b.Needs) != 0 }) {
		return table{}
	}
	return newTable(f.visit, s.Call.Budgets, tableSpec[explain.BudgetCheck]{
		Name: "budgets", Caption: "Budgets before and after the request", Columns: []column[explain.BudgetCheck]{
			{Title: "Budget", Cell: func(b *explain.BudgetCheck) cell { return textCell(title(b.Scope), words(b.Budget)) }},
			{Title: "Used", Cell: func(b *explain.BudgetCheck) cell { return cell{Bar: new(checkBar(b))} }},
			{Title: "Before", Number: true, Value: func(b *explain.BudgetCheck) any { return ofBudget(b, before(b)) }},
			{Title: "Request", Number: true, Cell: func(b *explain.BudgetCheck) cell { return checkedCost(f, b) }},
			{Title: "After", Number: true, Cell: func(b *explain.BudgetCheck) cell {
				return textCell(ofBudget(b, b.After),
					"of "+ofBudget(b, b.Limit))
			}},
			{Title: "Result", Cell: func(b *explain.BudgetCheck) cell {
				if b.Exceeded {
					return cell{Status: &status{levelBad, "Exceeded"}}
				}
				return cell{Status: &status{levelGood, "Fits"}}
			}},
		},
	})
}

// before returns the used and reserved amount of a budget before the call.
func before(b *explain.BudgetCheck) string {
	return fmt.Sprint(decimal(b.Used) + decimal(b.Reserved))
}

// checkedCost shows the amount that a call is checked with. A period budget counts only the cost of a limited time, so checkedCost also
// shows the cost until the end of the period.
func checkedCost(f *frame, b *explain.BudgetCheck) cell {
	c := textCell(plus(ofBudget(b, b.Needs)))
	if b.Hours == 0 {
		return c
	}
	c.Sub = "for " + lastingFully(time.Duration(b.Hours*float64(time.Hour)).Round(time.Minute))
	if b.ByEnd != "" {
		c.Sub += ", about " + plus(amount(b.ByEnd)) + " until " + f.When(b.RenewsAt).At.Format("2 Jan")
	}
	return c
}

// plus marks an amount as an addition.
func plus(amount string) string { return strings.Replace("+"+amount, "+less than", "less than", 1) }

// countBudget reports whether a budget limits a number instead of a cost.
func countBudget(name string) bool {
	return slices.Contains([]string{"gpus", "pods", "workers", "volume_gb", "sandboxes"}, name)
}

// ofBudget formats an amount of a budget.
func ofBudget(b *explain.BudgetCheck, n string) string {
	if countBudget(b.Budget) {
		return count(int64(decimal(n)))
	}
	return amount(n)
}

// checkBar returns the bar of a budget, with the amount of the call as its reserved part.
func checkBar(b *explain.BudgetCheck) bar {
	x := newBar(decimal(b.Limit), decimal(before(b)), decimal(b.Needs), 0)
	x.Label = ofBudget(b, before(b)) + " used and " + ofBudget(b, b.Needs) + " for this request, of " + ofBudget(b, b.Limit)
	return x
}

// timelineRow is a row of a timeline: one stage, or several consecutive stages that passed without a finding.
type timelineRow struct {
	Title  string
	Result status
	Notes  []string
	// Took is the duration. X and Width are the position and width of the bar in percent. All are empty if the stage was not measured.
	Took, X, Width string
	// Inner lists the stages that the row combines.
	Inner []timelineRow
}

// Timeline returns the stages in order. Consecutive stages without new findings are combined if each of them took at most a twentieth of
// the total time.
func (s callSection) Timeline() (out []timelineRow) {
	total := 0.0
	for i := range s.Stages {
		total = max(total, s.Stages[i].StartMs+s.Stages[i].Ms)
	}
	var quiet []explain.Stage
	flush := func() {
		out = append(out, summedUp(quiet, total)...)
		quiet = nil
	}
	seen := make(map[string]bool) // a stage of the request that is entered for the call again has the same findings
	for _, x := range s.Stages {
		if x.Result == "passed" && (len(x.Notes) == 0 || seen[x.Name]) && x.Ms <= total/20 {
			x.Notes = nil
			quiet = append(quiet, x)
			continue
		}
		flush()
		seen[x.Name] = true
		out = append(out, stageRow(&x, total))
	}
	flush()
	return out
}

// stageRow returns the row of a stage. total is the length of the timeline in milliseconds.
func stageRow(x *explain.Stage, total float64) timelineRow {
	r := timelineRow{Title: stageName(x.Name), Result: statusOf(x.Result)}
	for _, n := range x.Notes {
		r.Notes = append(r.Notes, readable(ruleOf(n)))
	}
	if total > 0 {
		r.Took, r.X, r.Width = millis(max(x.Ms, 0.001)), coordinate(100*x.StartMs/total), coordinate(max(0.5, 100*x.Ms/total))
	}
	return r
}

// stageName returns the readable name of a stage.
func stageName(name string) string {
	if name == "dispatch" {
		return "Platform call"
	}
	return title(name)
}

// summedUp combines several stages into one row.
func summedUp(stages []explain.Stage, total float64) []timelineRow {
	switch len(stages) {
	case 0:
		return nil
	case 1:
		return []timelineRow{stageRow(&stages[0], total)}
	}
	first, last := &stages[0], &stages[len(stages)-1]
	sum := stageRow(&explain.Stage{Result: "passed", StartMs: first.StartMs, Ms: last.StartMs + last.Ms - first.StartMs}, total)
	sum.Title = plural(len(stages), "quick stage")
	for i := range stages {
		sum.Inner = append(sum.Inner, stageRow(&stages[i], total))
	}
	return []timelineRow{sum}
}
