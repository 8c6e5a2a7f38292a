package filter

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/policies"
)

// Explanation tells of one exchange stage by stage: of one that took place, or
// of one that would.
type Explanation struct {
	// Dry says that nothing was sent and nothing was counted.
	Dry        bool      `json:"dry"`
	DecisionID string    `json:"decisionId,omitempty"`
	RequestID  string    `json:"requestId,omitempty"`
	Time       time.Time `json:"time"`
	// Revision names the configuration.
	Revision  string          `json:"revision"`
	Method    string          `json:"method"`
	Path      string          `json:"path"`
	Dialect   string          `json:"dialect"`
	Operation string          `json:"operation"`
	Caller    ExplainedCaller `json:"caller"`
	Verdict   Verdict         `json:"verdict"`
	// Status is the answer's. Of a dry run it is that of a refusal, and 0 when
	// the platform would have answered.
	Status int `json:"status,omitempty"`
	// Refusal is the kind of problem, Stage who raised it, Detail what the
	// caller was told.
	Refusal string `json:"refusal,omitempty"`
	Stage   string `json:"stage,omitempty"`
	Detail  string `json:"detail,omitempty"`
	// Stages are those of the request as a whole, in order.
	Stages []ExplainedStage `json:"stages"`
	// Calls are the v2 calls it became; of a v2 request, itself.
	Calls []ExplainedCall `json:"calls"`
	// ToPass says what would have to change for the request to pass.
	ToPass []string `json:"toPass,omitempty"`
}

// Verdict is how a request fares in the gateway.
type Verdict string

// The verdicts. Unknown is for a dry run that could not see what would decide.
const (
	VerdictAllowed Verdict = "allowed"
	VerdictRefused Verdict = "refused"
	VerdictUnknown Verdict = "unknown"
)

// ExplainedCaller is who called, or is taken to.
type ExplainedCaller struct {
	Org   string   `json:"org"`
	Team  string   `json:"team,omitempty"`
	Key   string   `json:"key,omitempty"`
	Roles []string `json:"roles,omitempty"`
}

// ExplainedStage is one stage and what it had to say.
type ExplainedStage struct {
	Name   string   `json:"name"`
	Result string   `json:"result"`
	Notes  []string `json:"notes,omitempty"`
}

// What became of a stage.
const (
	stagePassed  = "passed"
	stageRefused = "refused"
	stageUnknown = "unknown"
	stageSkipped = "not rehearsed"
	stageAnswers = "answers"
)

// ExplainedCall is one v2 call.
type ExplainedCall struct {
	Operation string `json:"operation"`
	Method    string `json:"method"`
	Path      string `json:"path"`
	// Body is what the platform would get, of a dry run only.
	Body any `json:"body,omitempty"`
	// Verdict, Status, Refusal and Detail are as those of the request.
	Verdict Verdict          `json:"verdict"`
	Status  int              `json:"status,omitempty"`
	Refusal string           `json:"refusal,omitempty"`
	Detail  string           `json:"detail,omitempty"`
	Stages  []ExplainedStage `json:"stages"`
	// PolicyRevision names what decided, Policies what each policy said.
	PolicyRevision string            `json:"policyRevision,omitempty"`
	Policies       []ExplainedPolicy `json:"policies,omitempty"`
	// USDPerHour is the worst case of what would run, Basis how it came about.
	USDPerHour string `json:"usdPerHour,omitempty"`
	Basis      string `json:"basis,omitempty"`
}

// ExplainedPolicy is what one policy said.
type ExplainedPolicy struct {
	Policy string `json:"policy"`
	// Verdict is denies, warns, would deny, excepted, changes, passes, or does
	// not apply.
	Verdict string `json:"verdict"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
	Doc     string `json:"doc,omitempty"`
}

// Find explains a kept exchange; ok is false when it is not, or no longer,
// kept.
func (h *History) Find(decisionID string) (*Explanation, bool) {
	h.mu.Lock()
	k, ok := h.byID[decisionID]
	h.mu.Unlock()
	if !ok {
		return nil, false
	}
	return k.explain(), true
}

// Summary is a kept exchange in one line.
type Summary struct {
	DecisionID string    `json:"decisionId"`
	Time       time.Time `json:"time"`
	Org        string    `json:"org"`
	Team       string    `json:"team,omitempty"`
	Key        string    `json:"key"`
	Dialect    string    `json:"dialect"`
	Operation  string    `json:"operation"`
	Verdict    Verdict   `json:"verdict"`
	Status     int       `json:"status"`
	Refusal    string    `json:"refusal,omitempty"`
	Denied     []string  `json:"denied,omitempty"`
	Warned     []string  `json:"warned,omitempty"`
	Shadowed   []string  `json:"shadowed,omitempty"`
	Excepted   []string  `json:"excepted,omitempty"`
	Changed    []string  `json:"changed,omitempty"`
}

// List returns the latest exchanges of an organisation, or of all for "",
// newest first and at most limit.
func (h *History) List(org string, limit int) []Summary {
	out := []Summary{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, part := range []*ring{&h.telling, &h.plain} {
		n := 0
		part.each(func(k *kept) bool {
			if e := &k.event; org == "" || e.Org == org {
				out = append(out, k.summary())
				n++
			}
			return n < limit
		})
	}
	slices.SortStableFunc(out, func(a, b Summary) int { return b.Time.Compare(a.Time) })
	return out[:min(limit, len(out))]
}

func (k *kept) summary() Summary {
	e := &k.event
	return Summary{
		DecisionID: e.DecisionID, Time: e.Start, Org: e.Org, Team: e.Team, Key: e.Key, Dialect: e.Dialect,
		Operation: e.Operation, Verdict: verdictOf(e.Refusal), Status: e.Status, Refusal: e.Refusal,
		Denied: e.Denied, Warned: e.Warned, Shadowed: e.Shadowed, Excepted: e.Excepted, Changed: e.Changed,
	}
}

func verdictOf(refusal string) Verdict {
	if refusal != "" {
		return VerdictRefused
	}
	return VerdictAllowed
}

// explain tells a kept exchange.
func (k *kept) explain() *Explanation {
	e := &k.event
	x := &Explanation{
		DecisionID: e.DecisionID, RequestID: e.RequestID, Time: e.Start, Revision: e.Revision,
		Method: e.Method, Path: k.path, Dialect: e.Dialect, Operation: e.Operation,
		Caller:  ExplainedCaller{Org: e.Org, Team: e.Team, Key: e.Key, Roles: roleNames(k.roles)},
		Verdict: verdictOf(e.Refusal), Status: e.Status, Refusal: e.Refusal, Stage: e.Stage, Detail: e.Detail,
		Calls: []ExplainedCall{},
	}
	seen := make(map[string]bool) // the size is looked at twice
	for _, name := range k.stages {
		if !hidden(name) && !seen[name] {
			x.Stages = append(x.Stages, k.stage(name))
		}
		seen[name] = true
	}
	for i := range k.calls {
		x.Calls = append(x.Calls, k.calls[i].explain())
	}
	x.ToPass = toPass(x)
	return x
}

// hidden lists the stages that do their work unseen.
func hidden(stage string) bool { return stage == "keep" || stage == "stamp" || stage == "note" }

func (k *kept) stage(name string) ExplainedStage {
	e := &k.event
	s := ExplainedStage{Name: name, Result: stagePassed}
	switch name {
	case "match":
		s.Notes = []string{e.Dialect + " operation " + e.Operation}
	case "identify":
		s.Notes = []string{callerText(e.Org, e.Team, e.Key, roleNames(k.roles))}
	case "count":
		if k.limit != nil {
			for _, w := range k.limit.Windows {
				s.Notes = append(s.Notes, fmt.Sprintf("%s: %d of %d left, turns in %s", w.Name, w.Remaining, w.Limit, w.Reset))
			}
			if k.limit.Degraded {
				s.Notes = append(s.Notes, "the shared store was away: decided by "+string(k.limit.Source))
			}
		}
	case "translate":
		if len(e.Calls) > 0 {
			s.Notes = []string{"became " + strings.Join(e.Calls, ", ")}
		}
	}
	if e.Stage == name {
		s.Result = stageRefused
		s.Notes = append(s.Notes, e.Detail)
	}
	return s
}

func callerText(org, team, key string, roles []string) string {
	parts := []string{"organisation " + org}
	for _, part := range []struct{ what, name string }{{"team ", team}, {"key ", key}, {"roles ", strings.Join(roles, ", ")}} {
		if part.name != "" {
			parts = append(parts, part.what+part.name)
		}
	}
	return strings.Join(parts, ", ")
}

// explain tells a call that was made or refused.
func (c *call) explain() ExplainedCall {
	x := ExplainedCall{
		Operation: c.operation, Method: c.method, Path: c.path, Verdict: verdictOf(c.refusal), Status: c.status,
		Refusal: c.refusal, Detail: c.detail, PolicyRevision: c.verdict.Revision, Policies: spoken(&c.verdict),
	}
	price(&x, c.cost, c.priced)
	for _, name := range c.stages {
		if hidden(name) {
			continue
		}
		s := ExplainedStage{Name: name, Result: stagePassed}
		switch {
		case name == "resolve" && c.template != "":
			s.Notes = append(s.Notes, "with template "+c.template)
		case name == "authorize" && c.verdict.Revision != "":
			s.Notes = append(s.Notes, "policies "+c.verdict.Revision)
		}
		if c.stage == name {
			s.Result = stageRefused
			s.Notes = append(s.Notes, c.detail)
		}
		x.Stages = append(x.Stages, s)
	}
	if c.upstream != 0 {
		x.Stages = append(x.Stages, ExplainedStage{
			Name: "dispatch", Result: stagePassed, Notes: []string{fmt.Sprintf("the platform answered %d", c.upstream)},
		})
	}
	return x
}

// price puts what is known of the cost on a call.
func price(x *ExplainedCall, c policies.Cost, priced bool) {
	switch {
	case priced:
		x.USDPerHour, x.Basis = c.Hourly.String(), c.Basis
	case c.Reason != "":
		x.Basis = "unknown: " + c.Reason
	}
}

// spoken lists what policies said, in the order of its weight.
func spoken(d *policies.Decision) []ExplainedPolicy {
	var out []ExplainedPolicy
	add := func(verdict string, list []policies.Violation) {
		for _, v := range list {
			out = append(out, ExplainedPolicy{Policy: v.Policy, Verdict: verdict, Message: v.Message, Field: v.Pointer, Doc: v.Doc})
		}
	}
	add(verdictDenies, d.Deny)
	add(verdictWarns, d.Warn)
	add(verdictWould, d.Shadow)
	for _, x := range d.Excepted {
		out = append(out, ExplainedPolicy{
			Policy: x.Policy, Verdict: verdictExcepted, Field: x.Pointer, Doc: x.Doc,
			Message: fmt.Sprintf("%s (lifted by %s until %s, granted by %s: %s)",
				x.Message, x.Exception, x.Until.UTC().Format(time.RFC3339), x.GrantedBy, x.Reason),
		})
	}
	for _, m := range d.Mutate {
		out = append(out, ExplainedPolicy{Policy: m.Policy, Verdict: verdictChanges, Message: m.Message, Field: m.Pointer})
	}
	return out
}

// What a policy said.
const (
	verdictDenies   = "denies"
	verdictWarns    = "warns"
	verdictWould    = "would deny"
	verdictExcepted = "excepted"
	verdictChanges  = "changes"
	verdictPasses   = "passes"
	verdictNoPart   = "does not apply"
)

// toPass collects what would have to change.
func toPass(x *Explanation) []string {
	if x.Verdict == VerdictAllowed {
		return nil // a candidate that was refused has found a better one
	}
	var out []string
	for _, c := range x.Calls {
		for _, p := range c.Policies {
			if p.Verdict == verdictDenies {
				out = union(out, []string{strings.TrimSpace(fmt.Sprintf("%s: %s %s", p.Policy, p.Message, atField(p.Field)))})
			}
		}
	}
	if len(out) > 0 || x.Refusal == "" {
		return out
	}
	switch x.Status {
	case http.StatusTooManyRequests:
		return []string{"wait: " + x.Detail}
	case http.StatusUnauthorized:
		return []string{"send a key this gateway knows"}
	default:
		if x.Status >= http.StatusInternalServerError {
			return []string{"try again later: " + x.Detail}
		}
		return []string{x.Detail}
	}
}

func atField(pointer string) string {
	if pointer == "" {
		return ""
	}
	return "(at " + location(pointer) + ")"
}
