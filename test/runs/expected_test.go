package runs

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// perDay is how full the organisation's budget of a day is.
func (r *rig) perDay(t *testing.T) money.Budget {
	t.Helper()
	for _, s := range asOperator[money.Ledger](t, r, "GET", "/admin/spend?org=acme").Scopes {
		if s.Scope == "organisation" {
			return s.Budgets[0]
		}
	}
	return money.Budget{}
}

// Agents ask for far more tokens than they take. Where the recent cost of runs is reserved, they
// do not block each other, an answer that cost more is taken in full, and one that says nothing
// costs the most that it can.
func TestExpectedCostIsReserved(t *testing.T) {
	const (
		target  = "/v2/llm/openai/v1/chat/completions"
		usual   = `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":200,"total_tokens":300}}`
		dear    = `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20000,"total_tokens":20100}}`
		nothing = `{"choices":[]}`
	)
	body := strings.Replace(hello, "16", "32000", 1)
	for reserve, admitted := range map[string]int64{"worst": 2, "expected": 20} {
		t.Run(reserve, func(t *testing.T) {
			var answer atomic.Pointer[string]
			say := func(text string) { answer.Store(&text) }
			say(usual)
			var held atomic.Pointer[chan struct{}]
			var calls atomic.Int64
			arrived := make(chan struct{}, 20)
			handler := func(w http.ResponseWriter, q *http.Request) {
				calls.Add(1)
				_, _ = io.Copy(io.Discard, q.Body)
				if gate := held.Load(); gate != nil {
					arrived <- struct{}{}
					<-*gate
				}
				text := *answer.Load()
				if strings.HasPrefix(text, "data:") {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, text)
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, text)
			}
			lines := strings.Replace(priced, "per_day: 1", "per_day: 10", 1) + "\n    runs: {reserve: " + reserve + "}"
			r := newRig(t, policies(lines), upstream(t, handler))
			for range 50 {
				r.want(t, 200, "POST", target, body)
			}
			r.spent(t, "1.05", "0")
			gate := make(chan struct{})
			held.Store(&gate)
			var passed, refused atomic.Int64
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					switch r.ask(t, "POST", target, "key_research", body).Status {
					case 200:
						passed.Add(1)
					case 402:
						refused.Add(1)
						arrived <- struct{}{}
					}
				})
			}
			for range 20 {
				<-arrived
			}
			budget := r.perDay(t)
			close(gate)
			held.Store(nil)
			all.Wait()
			if passed.Load() != admitted || refused.Load() != 20-admitted {
				t.Errorf("%d passed and %d were refused, want %d of 20 to pass", passed.Load(), refused.Load(), admitted)
			}
			if reserve == "worst" {
				if budget.Over != "" {
					t.Errorf("%+v: the budget cannot be passed", budget)
				}
				return
			}
			// 20 runs of at most 3.20088 USD beside 1.05 spent, and 10 is the budget
			if budget.Used != "1.05" || budget.Reserved != "0.42" || budget.Over != "55.0676" {
				t.Errorf("%+v, want 1.05 used, 0.42 reserved, and passed by 55.0676 at most", budget)
			}
			r.spent(t, "1.47", "0")

			say(dear)
			if a := r.ask(t, "POST", target, "key_research", body); a.Status != 200 || a.Header.Get("X-Tollgate-Cost") != "2.001" {
				t.Errorf("%d %v %s, want 200 and what it has cost", a.Status, a.Header, a.Body)
			}
			r.spent(t, "3.471", "0")
			say(nothing)
			if a := r.ask(t, "POST", target, "key_research", body); a.Status != 200 || a.Header.Get("X-Tollgate-Cost") != "3.20088" {
				t.Errorf("%d %v %s, want 200 and the most that it can cost", a.Status, a.Header, a.Body)
			}
			r.spent(t, "6.67188", "0")
			say(usual)
			if a := r.ask(t, "POST", target, "key_tiny", body); a.Status != 200 {
				t.Errorf("another key, of which nothing is known: %d %s, want 200", a.Status, a.Body)
			}
			before := calls.Load()
			if a := r.ask(t, "POST", target, "key_tiny", strings.Replace(body, "32000", "64000", 1)); a.Status != 402 || calls.Load() != before {
				t.Errorf("another key, of which little is known: %d %s, want 402", a.Status, a.Body)
			}
			if a := r.ask(t, "POST", target, "key_research", strings.Replace(body, "32000", "64000", 1)); a.Status != 200 {
				t.Errorf("%d %s, want 200", a.Status, a.Body)
			}
			say("data: {\"choices\":[]}\n\n")
			_, stream := openWith(t, r, strings.Replace(body, "{", `{"stream":true,`, 1))
			if _, err := io.ReadAll(stream); err == nil {
				t.Error("a chat that broke off looks whole")
			}
			r.close()
			r.spent(t, "9.9149", "0")
		})
	}
}
