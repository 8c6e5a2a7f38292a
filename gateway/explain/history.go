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
)

// History is a filter.Observer that keeps the latest exchanges of known callers, and
// the gateway's own acts, in memory, a bounded number of them. Reads that were answered have a part
// of its own, so that polling does not push out the exchanges that operators ask about. It
// is safe for concurrent use.
type History struct {
	mu               sync.Mutex // guards what follows
	notable, routine ring
	watches          map[*Watch]bool

	onNotable func(Entry)
}

// Entry is an exchange that has ended, or something that the gateway did by itself.
type Entry struct {
	exchange *filter.Exchange
	own      *Report
}

// Ended is the Past of an exchange that has ended.
func Ended(ex *filter.Exchange) Entry { return Entry{exchange: ex} }

// Report reports on it, with the notes of a chain's filters.
func (p Entry) Report(noters filter.Explainers) *Report {
	if p.own != nil {
		return p.own
	}
	return (&reporter{noters: noters}).report(p.exchange)
}

// id is that of the decision.
func (p Entry) id() string {
	if p.own != nil {
		return p.own.DecisionID
	}
	return p.exchange.Event.DecisionID
}

// HasPolicyResults reports whether a policy said anything of it.
func (p Entry) HasPolicyResults() bool {
	if p.exchange == nil {
		return false
	}
	e := p.exchange.Event
	return len(e.Denied)+len(e.Warned)+len(e.Shadowed)+len(e.Excepted)+len(e.Changed) > 0
}

// PolicyResult is what a policy said of a call.
type PolicyResult struct{ Policy, Verdict string }

// PolicyResults returns what policies said of the calls of an exchange. A verdict of a policy is listed once for each call.
func PolicyResults(ex *filter.Exchange) (list []PolicyResult) {
	if !Ended(ex).HasPolicyResults() {
		return nil
	}
	for _, c := range append([]*filter.Exchange{ex}, ex.Calls...) {
		once := make(map[PolicyResult]bool)
		for _, p := range policyResults(&c.Evaluation.Verdict) {
			if s := (PolicyResult{p.Policy, p.Verdict}); !once[s] {
				once[s], list = true, append(list, s)
			}
		}
	}
	return list
}

func (p Entry) none() bool { return p.own == nil && p.exchange == nil }

// NewHistory returns a History of the latest size exchanges, at least two. It calls
// tell, if that is not nil, with each exchange that did more than read and pass. That is not to be
// changed.
func NewHistory(size int, tell func(Entry)) *History {
	half := max(1, size/2)
	return &History{
		onNotable: tell,
		notable:   ring{items: make([]Entry, half)}, routine: ring{items: make([]Entry, half)},
	}
}

// IsLocalRead reports whether an exchange is a read that the gateway answers by itself, such as a caller's view of its own records.
func IsLocalRead(ex *filter.Exchange) bool {
	return ex.Stage() == "local" && ex.Event.Method == http.MethodGet
}

// Ended implements filter.Observer. It keeps no [IsLocalRead], answered or not.
func (h *History) Ended(ex *filter.Exchange) {
	if ex.Caller != nil && !IsLocalRead(ex) {
		h.add(Ended(ex.Snapshot()))
	}
}

// AddOwn adds an act of the gateway itself.
func (h *History) AddOwn(x *Report) { h.add(Entry{own: x}) }

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

// kept returns both parts as they are.
func (h *History) kept() [2]ring {
	h.mu.Lock()
	defer h.mu.Unlock()
	return [2]ring{h.notable.clone(), h.routine.clone()}
}

// isRoutinene reports whether an exchange only read, passed, and no policy spoke, or was
// refused because there was too much to do.
func isRoutine(ex *filter.Exchange) bool {
	e := ex.Event
	return e.Refusal == string(problem.Overloaded) || e.Method == http.MethodGet && e.Status < 400 && e.Refusal == "" && !Ended(ex).HasPolicyResults()
}

// Find reports on a kept exchange; ok is false when it is not, or no longer,
// kept. The chain is the one now in force: all chains of a program have the same
// stages.
func (h *History) Find(chain *filter.Chain, decisionID string) (x *Report, ok bool) {
	for _, part := range h.kept() {
		part.each(func(p Entry) bool {
			if p.id() == decisionID {
				x = p.Report(chain.Explainers())
			}
			return x == nil
		})
	}
	return x, x != nil
}

// Summary is a kept exchange in one line.
type Summary struct {
	DecisionID string    `json:"decisionId"`
	Time       time.Time `json:"time"`
	Org        string    `json:"org"`
	Team       string    `json:"team,omitempty"`
	Key        string    `json:"key"`
	Dialect    string    `json:"dialect"`
	// Dry says that the verdict is the prediction of a dry run.
	Dry       bool    `json:"dry,omitempty"`
	Operation string  `json:"operation"`
	Verdict   Verdict `json:"verdict"`
	Status    int     `json:"status"`
	Refusal   string  `json:"refusal,omitempty"`
	// Reason is the reason for a refusal in the words that the caller was told. For a call that passed it is what policies said about the call. The
	// reason of a dry run begins with "dry run".
	Reason string     `json:"reason,omitempty"`
	Own    *OwnAction `json:"own,omitempty"`
	PolicyNames
}

// Query selects summaries. A zero member selects all.
type Query struct {
	Org, Team, Key string
	// Policy selects exchanges about which a policy said anything, and Operation those of one operation.
	Policy, Operation string
	// Refused selects refused exchanges.
	Refused bool
	// OwnAction selects the gateway's own acts.
	Own bool
	// Since selects exchanges that began no earlier.
	Since time.Time
	// Before selects exchanges that began earlier; the zero Time selects all.
	Before time.Time
	// Limit bounds how many there are, the newest.
	Limit int
}

// Match reports whether a summary is selected.
func (q Query) Match(s *Summary) bool {
	return (q.Org == "" || q.Org == s.Org) && (q.Team == "" || q.Team == s.Team) && (q.Key == "" || q.Key == s.Key) &&
		(q.Operation == "" || q.Operation == s.Operation) && (q.Policy == "" || s.names(q.Policy)) &&
		(!q.Refused || s.Verdict == Refused) && (!q.Own || s.Own != nil) && !s.Time.Before(q.Since) && (q.Before.IsZero() || s.Time.Before(q.Before))
}

// Newest returns summaries of several lists, each once, newest first and no more than
// the limit.
func (q Query) Newest(lists ...[]Summary) []Summary {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b Summary) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.DecisionID, a.DecisionID))
	})
	all = slices.CompactFunc(all, func(a, b Summary) bool { return a.DecisionID == b.DecisionID })
	return all[:min(q.Limit, len(all))]
}

// List returns the kept exchanges that are selected, newest first.
func (h *History) List(q Query) []Summary {
	out := []Summary{}
	for _, part := range h.kept() {
		n := 0
		part.each(func(p Entry) bool {
			if s := p.Report(nil).Summary(); q.Match(&s) {
				out = append(out, s)
				n++
			}
			return n < q.Limit
		})
	}
	return q.Newest(out)
}

// Summary is the report in one line.
func (x *Report) Summary() Summary {
	return Summary{
		DecisionID: x.DecisionID, Time: x.Time, Org: x.Caller.Org, Team: x.Caller.Team, Key: x.Caller.Key, Dialect: x.Dialect,
		Dry: x.Dry, Operation: x.Operation, Verdict: x.Verdict, Status: x.Status, Refusal: x.Refusal, Reason: dryReason(x.Dry, x.reason()), Own: x.Own, PolicyNames: x.PolicyNames,
	}
}

// maxReason bounds a reason, in characters.
const maxReason = 200

// reason is that of the summary.
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

// ForCaller returns the summary as callers may see it: without policies that are only tried out, and
// without exceptions.
func (s Summary) ForCaller() Summary {
	ofPolicies := s.Reason == dryReason(s.Dry, s.words())
	s.Shadowed, s.Excepted = nil, nil
	if ofPolicies {
		s.Reason = dryReason(s.Dry, s.words())
	}
	return s
}

// reporter says which policies spoke, and how.
func (s PolicyNames) words() string {
	var parts []string
	for _, said := range []struct {
		names      []string
		one, after string
	}{
		{s.Denied, "policy ", ""},
		{s.Shadowed, "policy ", " would refuse"},
		{s.Warned, "policy ", " warns"},
		{s.Excepted, "exception ", ""},
		{s.Changed, "changed by ", ""},
	} {
		if len(said.names) > 0 {
			parts = append(parts, said.one+strings.Join(said.names, ", ")+said.after)
		}
	}
	return strings.Join(parts, "; ")
}

// ring holds the latest.
type ring struct {
	items []Entry
	next  int
}

// push puts one in the place of the oldest.
func (r *ring) push(p Entry) {
	r.items[r.next] = p
	r.next = (r.next + 1) % len(r.items)
}

// clone returns a copy.
func (r *ring) clone() ring { return ring{slices.Clone(r.items), r.next} }

// each calls f with the newest first until it returns false.
func (r *ring) each(f func(Entry) bool) {
	for i := range r.items {
		p := r.items[(r.next+2*len(r.items)-1-i)%len(r.items)]
		if p.none() || !f(p) {
			return
		}
	}
}
