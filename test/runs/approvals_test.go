package runs

import (
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/approval"
)

// grants lets a call pass that a request for approval is about.
func (r *rig) grants(t *testing.T, id string, more ...string) approval.Record {
	t.Helper()
	q := url.Values{"org": {"acme"}, "id": {id}, "by": {"ada"}}
	for _, m := range more {
		name, value, _ := strings.Cut(m, "=")
		q.Set(name, value)
	}
	return asOperator[approval.Record](t, r, "POST", "/admin/approvals/grant?"+q.Encode())
}

var approvalID = regexp.MustCompile(`ap-[0-9A-Z]{26}`)

// A run that a budget has no room for becomes a request for approval at the price of
// the run, and passes once when that is granted.
func TestRunsAreApproved(t *testing.T) {
	const done = `{"id":"sync-1","status":"COMPLETED","delayTime":5,"executionTime":10,"output":{},"choices":[]}`
	for name, tc := range map[string]struct{ target, body, usd, spent string }{
		"runsync": {"/v2/img/runsync", `{"input":{"prompt":"a cat"}}`, "0.3", "0.9"},
		"run":     {"/v2/clip/run", `{"input":{"duration":9}}`, "0.9", "1.5"},
		"chat":    {"/v2/llm/openai/v1/chat/completions", strings.Replace(hello, "16", "5000", 1), "0.50087", "1.10087"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			budget := strings.Replace(priced, "{per_day: 1}", "{per_day: 0.7, approvable: true}", 1)
			r := newRig(t, policies(budget), upstream(t, answering(&calls, func(string) (int, string) { return 200, done })))
			ask := func(body string) (status int, answer string) {
				a := r.ask(t, "POST", tc.target, "key_research", body)
				return a.Status, a.Body
			}
			for range 2 {
				if a := r.ask(t, "POST", "/v2/img/runsync", "key_research", `{"input":{"prompt":"a dog"}}`); a.Status != 200 {
					t.Fatalf("what fits: %d %s", a.Status, a.Body)
				}
			}
			status, refusal := ask(tc.body)
			id := approvalID.FindString(refusal)
			if status != 402 || id == "" || !strings.Contains(refusal, "tollgate approvals grant acme "+id) || calls.Load() != 2 {
				t.Fatalf("%d %s after %d calls, want 402 that says how to have it approved", status, refusal, calls.Load())
			}
			if x := r.grants(t, id); x.USD != tc.usd || x.Per != approval.PerRun || x.Answer.MaxUSD != tc.usd {
				t.Errorf("granted %s per %s for at most %s, want %s per run", x.USD, x.Per, x.Answer.MaxUSD, tc.usd)
			}
			if status, answer := ask(strings.Replace(tc.body, "{", `{"x":1,`, 1)); status == 200 {
				t.Errorf("another body: %d %s, want no pass", status, answer)
			}
			if status, answer := ask(tc.body); status != 200 || calls.Load() != 3 {
				t.Errorf("granted: %d %s after %d calls, want 200", status, answer, calls.Load())
			}
			if status, answer := ask(tc.body); status != 402 {
				t.Errorf("once more: %d %s, want 402", status, answer)
			}
			r.spent(t, tc.spent, "0")
		})
	}
}
