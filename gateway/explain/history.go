package explain

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/filter"
)

// History is a filter.Observer that keeps the latest exchanges of known callers
// in memory, a bounded number of them. What only read and was answered has a part
// of its own, so that polling does not push out what operators ask about. It
// is safe for concurrent use.
type History struct {
	mu             sync.Mutex // guards what follows
	telling, plain ring
	byID           map[string]*filter.Exchange
}

// NewHistory returns a History of the latest size exchanges, at least two.
func NewHistory(size int) *History {
	half := max(1, size/2)
	return &History{
		telling: ring{items: make([]*filter.Exchange, half)}, plain: ring{items: make([]*filter.Exchange, half)},
		byID: make(map[string]*filter.Exchange, 2*half),
	}
}

// Ended implements filter.Observer.
func (h *History) Ended(ex *filter.Exchange) {
	if ex.Caller != nil {
		h.add(ex.Record())
	}
}

func (h *History) add(ex *filter.Exchange) {
	part := &h.telling
	if plain(ex) {
		part = &h.plain
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if gone := part.push(ex); gone != nil {
		delete(h.byID, gone.Event.DecisionID)
	}
	h.byID[ex.Event.DecisionID] = ex
}

// plain reports whether an exchange only read, passed, and no policy spoke.
func plain(ex *filter.Exchange) bool {
	e := ex.Event
	return e.Method == http.MethodGet && e.Status < 400 && e.Refusal == "" &&
		len(e.Denied)+len(e.Warned)+len(e.Shadowed)+len(e.Excepted)+len(e.Changed) == 0
}

// Find reports on a kept exchange; ok is false when it is not, or no longer,
// kept. The chain is the one now in force: all chains of a program have the same
// stages.
func (h *History) Find(chain *filter.Chain, decisionID string) (_ *Report, ok bool) {
	h.mu.Lock()
	ex, ok := h.byID[decisionID]
	h.mu.Unlock()
	if !ok {
		return nil, false
	}
	return (&words{chain: chain}).report(ex), true
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
		part.each(func(ex *filter.Exchange) bool {
			if org == "" || ex.Event.Org == org {
				out = append(out, summary(ex))
				n++
			}
			return n < limit
		})
	}
	slices.SortStableFunc(out, func(a, b Summary) int { return b.Time.Compare(a.Time) })
	return out[:min(limit, len(out))]
}

func summary(ex *filter.Exchange) Summary {
	e := ex.Event
	return Summary{
		DecisionID: e.DecisionID, Time: e.Start, Org: e.Org, Team: e.Team, Key: e.Key, Dialect: e.Dialect,
		Operation: e.Operation, Verdict: new(words).end(ex).verdict, Status: e.Status, Refusal: e.Refusal,
		Denied: e.Denied, Warned: e.Warned, Shadowed: e.Shadowed, Excepted: e.Excepted, Changed: e.Changed,
	}
}

// ring holds the latest exchanges.
type ring struct {
	items []*filter.Exchange
	next  int
}

// push puts an exchange in the place of the oldest, which it returns.
func (r *ring) push(ex *filter.Exchange) (gone *filter.Exchange) {
	gone, r.items[r.next] = r.items[r.next], ex
	r.next = (r.next + 1) % len(r.items)
	return gone
}

// each calls f with the newest first until it returns false.
func (r *ring) each(f func(*filter.Exchange) bool) {
	for i := range r.items {
		ex := r.items[(r.next+2*len(r.items)-1-i)%len(r.items)]
		if ex == nil || !f(ex) {
			return
		}
	}
}
