package ui

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/policies/replay"
)

// playground holds a draft of policies, a request, and the results of the evaluation, if any.
type playground struct {
	operator.Draft

	Decision, Input, Since string
	Tried                  *operator.TrialResult
	Replayed               *replay.Report
	// Faults lists the errors in the draft, by line.
	Faults []lineFault
	// TooLong reports that the draft is too long for an address.
	TooLong bool
}

// lineFault is an error in a line of the draft.
type lineFault struct {
	Line int
	Text string
}

// sample is the initial text of a draft.
const sample = `package policies.draft

deny contains msg if {
	count := input.resource.after.gpu.count
	print("GPUs:", count)
	count > 1
	msg := sprintf("%d GPUs exceed 1", [count])
}
`

// Actions of the playground.
const (
	doTry    = "try"
	doReplay = "replay"
)

// packed is the content of the address parameter draft.
type packed struct {
	Rego     string `json:"rego,omitempty"`
	Policies string `json:"policies,omitempty"`
	Input    string `json:"input,omitempty"`
}

// pack encodes the draft as an address parameter: compressed JSON in base64url.
func (p *playground) pack() string {
	text, _ := json.Marshal(packed{p.Rego, p.Policies, p.Input}) // strings
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression) // the level is known
	_, _ = w.Write(text)                                 // into memory
	_ = w.Close()
	return base64.RawURLEncoding.EncodeToString(out.Bytes())
}

// unpack sets the draft from an address parameter. An invalid parameter is ignored.
func (p *playground) unpack(param string) {
	raw, err := base64.RawURLEncoding.DecodeString(param)
	if err != nil || param == "" {
		return
	}
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), maxForm))
	var d packed
	if err != nil || json.Unmarshal(text, &d) != nil {
		return
	}
	p.Rego, p.Policies, p.Input = d.Rego, d.Policies, d.Input
}

// loadPlayground shows the draft in the address, and its result if the address requests one.
func loadPlayground(v *visit) (any, int, string) {
	if _, err := v.rows.Endpoint(tryRow).Admit(v.scope, v.org); err != nil {
		status, fault := adminapi.StatusOf(err)
		return nil, status, fault
	}
	p := &playground{Decision: strings.TrimSpace(v.Query("decision")), Since: cmp.Or(v.Query("since"), "7d")}
	p.Policies = v.Query("policies")
	if p.unpack(v.Query("draft")); p.Policies == "" && p.Rego == "" {
		p.Rego = sample
	}
	do := v.Query("do")
	if site := v.r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		do = "" // a link on another site shows the draft, but does not run it
	}
	status, fault := p.run(v, do)
	return *p, status, fault
}

// run evaluates the draft for an action. It stores errors with a line number in Faults.
func (p *playground) run(v *visit, do string) (status int, fault string) {
	var err error
	switch do {
	case doTry:
		err = p.try(v)
	case doReplay:
		err = p.replay(v)
	}
	status, fault = adminapi.StatusOf(err)
	if p.Faults = faultsOf(fault); len(p.Faults) > 0 {
		fault = ""
	}
	return status, fault
}

// playground handles the form. It redirects to an address that contains the draft, so that the page can be shared and the browser's history
// retains the draft. A draft that is too long for an address is evaluated directly. The draft never takes effect.
func (v *visit) playground() error {
	if _, err := v.rows.Endpoint(tryRow).Admit(v.scope, v.org); err != nil {
		return err
	}
	lines := strings.NewReplacer("\r\n", "\n") // forms submit CRLF
	p := &playground{
		Draft:    operator.Draft{Rego: lines.Replace(v.r.PostFormValue("rego")), Policies: lines.Replace(v.r.PostFormValue("policies"))},
		Decision: strings.TrimSpace(v.r.PostFormValue("decision")), Input: lines.Replace(v.r.PostFormValue("input")),
		Since: v.r.PostFormValue("since"),
	}
	do := doTry
	if v.r.PostFormValue("do") == doReplay {
		do = doReplay
	}
	if p.Decision != "" {
		p.Input = "" // the decision's input is used
	}
	if draft := p.pack(); len(draft) <= maxAddress {
		q := url.Values{"org": {v.org}, "draft": {draft}, "do": {do}, "since": {p.Since}}
		http.Redirect(v.w, v.r, address(v.path+"playground", q, []string{"decision", p.Decision}), http.StatusSeeOther)
		return nil
	}
	p.TooLong = true
	status, fault := p.run(v, do)
	v.render(cmp.Or(status, http.StatusOK), "playground", frame{Title: "Playground", Page: "playground", Fault: fault, Data: *p})
	return nil
}

func (p *playground) replay(v *visit) error {
	text, err := json.Marshal(p.Draft)
	if err != nil {
		return err
	}
	report, err := reply[replay.Report](v, replayRow, url.Values{"since": {p.Since}}, text)
	if err == nil {
		p.Replayed = &report
	}
	return err
}

func (p *playground) try(v *visit) error {
	trial := operator.Trial{Draft: p.Draft, Decision: p.Decision}
	if p.Decision == "" && strings.TrimSpace(p.Input) == "" {
		return adminapi.BadRequestError{Reason: "enter a request ID or a policy input"}
	}
	if p.Decision == "" {
		in := json.NewDecoder(strings.NewReader(p.Input))
		in.UseNumber()
		if err := in.Decode(&trial.Input); err != nil && !errors.Is(err, io.EOF) {
			return adminapi.BadRequestError{Reason: "the input is not a JSON object: " + err.Error()}
		}
	}
	text, err := json.Marshal(trial)
	if err != nil {
		return err
	}
	tried, err := reply[operator.TrialResult](v, tryRow, nil, text)
	if err == nil {
		p.Tried, p.Input = &tried, pretty(tried.Input)
	}
	return err
}

// located matches the position in an error of a draft, such as "draft.rego:3:5: message".
var located = regexp.MustCompile(`draft\.rego:(\d+)(?::\d+)?:\s*`)

// faultsOf returns the errors in a draft by line, or nil if the error has no line number.
func faultsOf(text string) (out []lineFault) {
	places := located.FindAllStringSubmatchIndex(text, -1)
	for i, at := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		line, _ := strconv.Atoi(text[at[2]:at[3]]) // digits
		out = append(out, lineFault{line, strings.TrimRight(text[at[1]:end], " \n;,")})
	}
	return out
}

// Head returns the header.
func (p playground) Head(f *frame) head {
	h := head{Title: "Playground", Text: "Test a draft policy on a recorded request, or on the requests of the last few days. The draft does not change any decision."}
	if p.Decision != "" {
		h.Actions = []button{{Title: "View request", Icon: "list", Path: f.Link("requests/" + url.PathEscape(p.Decision))}}
	}
	return h
}

// gutterLine is a line number of the editor. Mark is "!" for a line with an error, "+" for a line that was evaluated, "-" for a line that
// was not evaluated, and a space otherwise.
type gutterLine struct {
	N    int
	Mark string
}

// Level returns the CSS class of the line.
func (l gutterLine) Level() string {
	return map[string]string{"!": levelBad, "+": levelGood, "-": levelWarn}[l.Mark]
}

// Gutter returns a line number for each row of the editor. The editor has a few more rows than the draft.
func (p playground) Gutter() (out []gutterLine) {
	for n := range p.Rows() {
		out = append(out, gutterLine{n + 1, p.mark(n + 1)})
	}
	return out
}

// mark returns the mark of a line.
func (p playground) mark(n int) string {
	switch {
	case slices.ContainsFunc(p.Faults, func(f lineFault) bool { return f.Line == n }):
		return "!"
	case p.Tried != nil && slices.Contains(p.Tried.Covered, n):
		return "+"
	case p.Tried != nil && slices.Contains(p.Tried.Missed, n):
		return "-"
	}
	return " "
}

// Rows returns the height of the editor in lines.
func (p playground) Rows() int { return max(16, strings.Count(p.Rego, "\n")+3) }

// SourceOf returns line n of the draft.
func (p playground) SourceOf(n int) string {
	lines := strings.Split(p.Rego, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[n-1])
}

// Coverage describes the evaluated lines of the draft. It returns "" for a draft without Rego.
func (p playground) Coverage() string {
	if p.Tried == nil || len(p.Tried.Covered)+len(p.Tried.Missed) == 0 {
		return ""
	}
	covered, missed := len(p.Tried.Covered), len(p.Tried.Missed)
	text := percent(float64(covered)/float64(covered+missed)) + " of the lines were evaluated (marked + in the editor)"
	if missed > 0 {
		text += ", and " + plural(missed, "line") + " not (marked −)"
	}
	return text + "."
}

// Verdict summarises the results for a request.
func (p playground) Verdict() status {
	has := func(verdict string) bool {
		return slices.ContainsFunc(p.Tried.Results, func(s operator.PolicyResult) bool { return s.Verdict == verdict })
	}
	switch {
	case has("denies"):
		return status{levelBad, "Denied"}
	case len(p.Tried.Undetermined) > 0:
		return status{levelWarn, "Unknown"}
	case has("would deny"):
		return status{levelInfo, "Allowed, would be denied in mode enforce"}
	case has("warns"):
		return status{levelWarn, "Allowed with a warning"}
	}
	return status{levelGood, "Allowed"}
}

// Results lists the results of the draft's policies for a request.
func (p playground) Results(f *frame) table {
	return newTable(f.visit, slices.Clone(p.Tried.Results), tableSpec[operator.PolicyResult]{
		Name: "results", Caption: "Results of " + strings.Join(p.Tried.Policies, ", "), Columns: []column[operator.PolicyResult]{
			{Title: "Policy", Value: func(s *operator.PolicyResult) any { return s.Policy }},
			{Title: "Result", Cell: func(s *operator.PolicyResult) cell { return statusCell(s.Verdict) }},
			{Title: "Message", Value: func(s *operator.PolicyResult) any { return s.Message }},
			{Title: "Field", Cell: func(s *operator.PolicyResult) cell { return codeCell(memberName(s.Field)) }},
		},
		Empty: empty{Title: "No violations", Text: strings.Join(p.Tried.Policies, ", ") + " allows the request."},
	})
}

// Differences lists the requests with a different decision under the draft, by kind.
func (p playground) Differences(f *frame) table {
	groups := make([]replay.Group, len(p.Replayed.Groups))
	for i, g := range p.Replayed.Groups {
		groups[i] = *g
	}
	columns := []column[replay.Group]{
		{Title: "Difference", Value: func(g *replay.Group) any { return title(string(g.Kind)) }},
		{Title: "Requests", Number: true, Value: func(g *replay.Group) any { return int64(g.Calls) }},
		{Title: "Policies", Cell: func(g *replay.Group) cell { return countLines(g.Policies) }},
	}
	if slices.ContainsFunc(groups, func(g replay.Group) bool { return len(g.Missing) > 0 }) {
		columns = append(columns, column[replay.Group]{
			Title: "Not in the log",
			Cell:  func(g *replay.Group) cell { return countLines(g.Missing) },
		})
	}
	return newTable(f.visit, groups, tableSpec[replay.Group]{Name: "replay", Caption: "Results of the replay", Columns: columns})
}

// countLines lists names with their counts.
func countLines[N int | int64](counts map[string]N) (c cell) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		c.Lines = append(c.Lines, name+": "+count(int64(counts[name])))
	}
	return c
}

// SinceField returns the field that selects the time range of a replay.
func (p playground) SinceField() field {
	x := field{Name: "since", ID: "since", Label: "Replay requests of", Type: "select"}
	for _, o := range [][2]string{{"24h", "the last 24 hours"}, {"7d", "the last 7 days"}, {"30d", "the last 30 days"}} {
		x.Options = append(x.Options, option{o[0], o[1], o[0] == p.Since})
	}
	return x
}
