package explain

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/route"
)

// History is a filter.Observer that keeps the latest exchanges of known callers and the gateway's own actions in memory. Successful reads
// are kept separately, so that polling clients do not displace the exchanges that operators look for. It is safe for concurrent use.
type History struct {
	mu               sync.Mutex // guards the fields below
	notable, routine ring
	watches          map[*Watch]bool

	onNotable func(Entry)
}

// Entry is an ended exchange or an action of the gateway itself.
type Entry struct {
	exchange *filter.Exchange
	own      *Report

	began time.Time
	id    string // decision ID
}

// Ended returns the Entry for an ended exchange.
func Ended(ex *filter.Exchange) Entry {
	return Entry{exchange: ex, began: ex.Event.Start, id: ex.Event.DecisionID}
}

// Report returns the report on the entry, with notes from the given explainers.
func (p Entry) Report(noters filter.Explainers) *Report {
	if p.own != nil {
		return p.own
	}
	return (&reporter{noters: noters}).report(p.exchange)
}

// hasPolicyResults reports whether any policy produced a result.
func hasPolicyResults(ex *filter.Exchange) bool {
	e := ex.Event
	return len(e.Denied)+len(e.Warned)+len(e.Shadowed)+len(e.Excepted)+len(e.Changed) > 0
}

// PolicyResult is the result of a policy for a call.
type PolicyResult struct{ Policy, Verdict string }

// PolicyResults returns the policy results for the calls of an exchange. Equal results for one call are listed once.
func PolicyResults(ex *filter.Exchange) (list []PolicyResult) {
	if !hasPolicyResults(ex) {
		return nil
	}
	for _, c := range append([]*filter.Exchange{ex}, ex.Calls...) {
		once := make(map[PolicyResult]bool)
		for _, p := range ResultsOf(&c.Evaluation.Verdict) {
			if s := (PolicyResult{p.Policy, p.Verdict}); !once[s] {
				once[s], list = true, append(list, s)
			}
		}
	}
	return list
}

// NewHistory returns a History of up to size entries, but at least two. If tell is not nil, it is called with each entry except
// successful reads, and must not change the entry.
func NewHistory(size int, tell func(Entry)) *History {
	half := max(1, size/2)
	return &History{
		onNotable: tell,
		notable:   ring{items: make([]Entry, 0, half)}, routine: ring{items: make([]Entry, 0, half)},
	}
}

// IsLocalRead reports whether an exchange is a read served by the gateway itself, such as a caller's view of its own records. It returns
// false for a read that was denied before the gateway served it, for example because of the caller's network.
func IsLocalRead(ex *filter.Exchange) bool {
	e := ex.Event
	local := ex.Route != nil && ex.Route.Dialect == route.V2 && ex.Operation == nil && OutcomeOf(e.Refusal, e.Status) != OutcomeDenied
	return e.Method == http.MethodGet && (local || ex.Stage() == filter.StageAnswerLocally)
}

// Ended implements filter.Observer. It ignores local reads; see [IsLocalRead].
func (h *History) Ended(ex *filter.Exchange) {
	if ex.Caller != nil && !IsLocalRead(ex) {
		h.add(Ended(ex.Snapshot()))
	}
}

// AddOwn adds an action of the gateway itself.
func (h *History) AddOwn(x *Report) { h.add(Entry{own: x, began: x.Time, id: x.DecisionID}) }

func (h *History) add(p Entry) {
	part, telling := &h.notable, p.own != nil || !isRoutine(p.exchange)
	if !telling {
		part = &h.routine
	}
	h.mu.Lock()
	part.push(p)
	for w := range h.watches {
		w.offer(p)
	}
	h.mu.Unlock()
	if h.onNotable != nil && telling {
		h.onNotable(p)
	}
}

// kept returns all entries.
func (h *History) kept() []Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.notable.items, h.routine.items)
}

// isRoutine reports whether an exchange was a successful read without policy results, or was refused because of overload.
func isRoutine(ex *filter.Exchange) bool {
	e := ex.Event
	return e.Refusal == string(problem.Overloaded) || e.Method == http.MethodGet && e.Status < 400 &&
		e.Refusal == "" && !hasPolicyResults(ex)
}

// Find returns the report on an exchange in the history. ok is false if the history does not contain the exchange. chain may belong to a
// newer configuration than the exchange, because the chains of all configurations have the same stages.
func (h *History) Find(chain *filter.Chain, decisionID string) (x *Report, ok bool) {
	for _, p := range h.kept() {
		if p.id == decisionID {
			return p.Report(chain.Explainers()), true
		}
	}
	return nil, false
}

// Summary describes an exchange of the history in one line.
type Summary struct {
	DecisionID string    `json:"decisionId"`
	Time       time.Time `json:"time"`
	Org        string    `json:"org"`
	Team       string    `json:"team,omitempty"`
	Key        string    `json:"key"`
	Dialect    string    `json:"dialect"`
	// Dry reports that the verdict was predicted by a dry run.
	Dry       bool    `json:"dry,omitempty"`
	Operation string  `json:"operation"`
	Verdict   Verdict `json:"verdict"`
	Status    int     `json:"status"`
	Refusal   string  `json:"refusal,omitempty"`
	// Reason is the detail of a refusal as sent to the caller. For a call that passed, it describes the policy results. For a dry run it
	// begins with "dry run".
	Reason string     `json:"reason,omitempty"`
	Own    *OwnAction `json:"own,omitempty"`
	// Outcome is allowed, denied, throttled or failed, as in the counts of requests by outcome.
	Outcome string `json:"outcome"`
	// Resource is the ID of the resource that the request created or named, and USDPerHour the maximum hourly cost of that resource.
	// Either may be "".
	Resource   string `json:"resource,omitempty"`
	USDPerHour string `json:"usdPerHour,omitempty"`
	// DurationMs is the time until the response was complete, in milliseconds, or 0 if the time is unknown.
	DurationMs float64 `json:"durationMs,omitempty"`
	PolicyNames
	// Lifted lists the policies whose denials were lifted by an exception.
	Lifted []string `json:"lifted,omitempty"`
}

// Query selects summaries. Zero fields select everything.
type Query struct {
	Org, Team, Key string
	// Policy selects exchanges with a result of this policy, and Operation selects exchanges with
	// this operation.
	Policy, Operation string
	// Resource selects exchanges that created or named this resource, and Outcome selects
	// exchanges with this outcome.
	Resource, Outcome string
	// Refused selects refused exchanges.
	Refused bool
	// Own selects actions of the gateway itself.
	Own bool
	// Since selects exchanges that began at this time or later.
	Since time.Time
	// Before selects exchanges that began before this time.
	Before time.Time
	// Limit is the number of summaries; the newest are selected. Summaries with the same time as the last one are selected too, so that
	// a list can continue with Before set to the time of the last summary.
	Limit int
}

// Match reports whether a summary is selected. It ignores Limit.
func (q Query) Match(s *Summary) bool {
	return (q.Org == "" || q.Org == s.Org) && (q.Team == "" || q.Team == s.Team) && (q.Key == "" || q.Key == s.Key) &&
		(q.Operation == "" || q.Operation == s.Operation) && (q.Policy == "" || s.names(q.Policy) || slices.Contains(s.Lifted, q.Policy)) &&
		(q.Resource == "" || q.Resource == s.Resource) && (q.Outcome == "" || q.Outcome == s.Outcome) &&
		(!q.Refused || s.Verdict == Refused) && (!q.Own || s.Own != nil) && !s.Time.Before(q.Since) &&
		(q.Before.IsZero() || s.Time.Before(q.Before))
}

// Newest merges several lists without duplicates, newest first, up to the limit. Each list must contain its own newest summaries up to the
// limit.
func (q Query) Newest(lists ...[]Summary) []Summary {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b Summary) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.DecisionID, a.DecisionID))
	})
	all = slices.CompactFunc(all, func(a, b Summary) bool { return a.DecisionID == b.DecisionID })
	n := min(q.Limit, len(all))
	for 0 < n && n < len(all) && all[n].Time.Equal(all[n-1].Time) {
		n++
	}
	return all[:n]
}

// List returns the selected exchanges, newest first.
func (h *History) List(q Query) []Summary {
	entries := h.kept()
	slices.SortFunc(entries, func(a, b Entry) int { return b.began.Compare(a.began) }) // the rings are in order of completion
	out := []Summary{}
	for _, p := range entries {
		if n := len(out); n >= q.Limit && p.began.Before(out[n-1].Time) {
			break
		}
		if s := p.Report(nil).Summary(); q.Match(&s) {
			out = append(out, s)
		}
	}
	return q.Newest(out)
}

// Summary returns the report in one line.
func (x *Report) Summary() Summary {
	outcome := OutcomeOf(x.Refusal, x.Status)
	if outcome == OutcomeAllowed && x.Verdict == Refused {
		outcome = OutcomeDenied
	}
	return Summary{
		DecisionID: x.DecisionID, Time: x.Time, Org: x.Caller.Org, Team: x.Caller.Team, Key: x.Caller.Key, Dialect: x.Dialect,
		Dry: x.Dry, Operation: x.Operation, Verdict: x.Verdict, Status: x.Status, Refusal: x.Refusal, Reason: dryReason(x.Dry, x.reason()),
		Own: x.Own, PolicyNames: x.PolicyNames, Lifted: x.lifted(),
		Outcome: outcome, Resource: x.resource(), USDPerHour: x.price(), DurationMs: x.DurationMs,
	}
}

// lifted returns the policies whose denials were lifted by an exception.
func (x *Report) lifted() (names []string) {
	for i := range x.Calls {
		for _, p := range x.Calls[i].Policies {
			if p.Verdict == verdictExcepted && !slices.Contains(names, p.Policy) {
				names = append(names, p.Policy)
			}
		}
	}
	return names
}

// resource returns the ID of the resource that the call created or is about, or "".
func (x *Report) resource() string {
	switch {
	case x.Own != nil:
		return x.Own.Resource
	case x.Resource != "":
		return x.Resource
	}
	parts := strings.Split(strings.Trim(x.Path, "/"), "/") // version, collection, ID
	if x.Dialect == "run" && len(parts) > 1 {
		return parts[1]
	}
	if len(parts) > 2 {
		id, _, _ := strings.Cut(parts[2], "?")
		return id
	}
	return ""
}

// maxReason is the maximum length of a reason in characters.
const maxReason = 200

// reason returns the reason for the summary.
func (x *Report) reason() string {
	if x.Refusal != "" && x.Detail != "" {
		text := []rune(strings.TrimSpace(x.Detail))
		if len(text) > maxReason {
			return string(text[:maxReason]) + "…"
		}
		return string(text)
	}
	return x.PolicyNames.words()
}

// dryReason marks the reason of a dry run.
func dryReason(dry bool, reason string) string {
	switch {
	case !dry:
		return reason
	case reason == "":
		return "dry run"
	}
	return "dry run: " + reason
}

// ForCaller returns the summary as callers may see it, without exceptions and without the results of policies in shadow mode.
func (s Summary) ForCaller() Summary {
	ofPolicies := s.Reason == dryReason(s.Dry, s.words())
	s.Shadowed, s.Excepted, s.Lifted = nil, nil, nil
	if ofPolicies {
		s.Reason = dryReason(s.Dry, s.words())
	}
	return s
}

// words describes the policy results.
func (s PolicyNames) words() string {
	var parts []string
	for _, part := range []struct {
		names      []string
		one, after string
	}{
		{s.Denied, "policy ", ""},
		{s.Shadowed, "policy ", " would refuse"},
		{s.Warned, "policy ", " warns"},
		{s.Excepted, "exception ", ""},
		{s.Changed, "changed by ", ""},
	} {
		if len(part.names) > 0 {
			parts = append(parts, part.one+strings.Join(part.names, ", ")+part.after)
		}
	}
	return strings.Join(parts, "; ")
}

// ring contains the latest entries, in any order.
type ring struct {
	items []Entry // up to their capacity
	next  int     // the oldest entry of a full ring
}

// push adds an entry. In a full ring, it replaces the oldest one.
func (r *ring) push(p Entry) {
	if len(r.items) < cap(r.items) {
		r.items = append(r.items, p)
		return
	}
	r.items[r.next] = p
	r.next = (r.next + 1) % len(r.items)
}
