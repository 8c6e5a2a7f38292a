package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// priced gives the organisation a dollar a day, and runs their prices.
const priced = `budget: {per_day: 1}
    model_paths: [responses]
    prices:
      runs:
        img: {usd_per_run: 0.3}
        clip: {usd_per_second: 0.1, default_seconds: 5}
        own: {usd_per_execution_hour: 3.6}
        llm: {usd_per_million_tokens: 100, usd_per_million_input_tokens: 10, default_tokens: 1000}`

// asOperator asks the admin listener and reads its answer.
func asOperator[T any](t *testing.T, r *rig, method, target string) T {
	t.Helper()
	w := httptest.NewRecorder()
	q := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	q.Host = "127.0.0.1"
	r.gateway.AdminHandler().ServeHTTP(w, q)
	var out T
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s %s: %d %s (%v)", method, target, w.Code, w.Body, err)
	}
	return out
}

// spent fails unless so much has accrued today and is reserved for runs, in USD.
func (r *rig) spent(t *testing.T, accrued, reserved string) {
	t.Helper()
	for _, s := range asOperator[money.Ledger](t, r, "GET", "/admin/spend?org=acme").Scopes {
		if s.Scope == "organisation" && (s.Day != accrued || s.Month != accrued || s.Reserved.Runs != reserved) {
			t.Errorf("today %s and this month %s have accrued, and %s are reserved; want %s and %s", s.Day, s.Month, s.Reserved.Runs, accrued, reserved)
		}
	}
}

// answering is a run interface that answers as it is told, and counts.
func answering(calls *atomic.Int64, answer func(path string) (status int, body string)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, q.Body)
		status, body := answer(q.URL.Path)
		media := "application/json"
		if strings.HasPrefix(body, "data:") {
			media = "text/event-stream"
		}
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Runs that race never spend more than the budget has, and a run that it has no room for is not
// sent.
func TestRunsThatRaceKeepTheBudget(t *testing.T) {
	var calls, jobs atomic.Int64
	r := newRig(t, policies(priced), upstream(t, answering(&calls, func(path string) (int, string) {
		id := path[strings.LastIndexByte(path, '/')+1:] // the reconciler asks for its status
		if strings.HasSuffix(path, "/run") {
			id = fmt.Sprint("job-", jobs.Add(1))
		}
		return 200, fmt.Sprintf(`{"id":%q,"status":"IN_QUEUE"}`, id)
	})))
	var admitted, refused atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			switch a := r.ask(t, "POST", "/v2/img/run", "key_research", `{"input":{"prompt":"a cat"}}`); {
			case a.Status == 200 && a.Header.Get("X-Tollgate-Cost") == "0.3":
				admitted.Add(1)
			case a.Status == 402 && strings.Contains(fmt.Sprint(decoded(t, a.Body)["error"]), "budget organisation per_day exceeded"):
				refused.Add(1)
			default:
				t.Errorf("%d %v %s, want 200 or 402", a.Status, a.Header, a.Body)
			}
		})
	}
	all.Wait()
	if admitted.Load() != 3 || refused.Load() != 17 || jobs.Load() != 3 {
		t.Errorf("%d were admitted, %d refused and %d sent; want 3, 17 and 3", admitted.Load(), refused.Load(), jobs.Load())
	}
	r.spent(t, "0", "0.9")
	if got := asOperator[money.Reconciled](t, r, "POST", "/admin/spend/reconcile?org=acme"); got.Released+got.Found+got.Open != 0 {
		t.Errorf("the reconciler ended holds of jobs: %+v", got)
	}
	r.spent(t, "0", "0.9")
	chat := r.ask(t, "POST", "/v2/llm/openai/v1/chat/completions", "key_research", strings.Replace(hello, "16", "2000", 1))
	e, _ := decoded(t, chat.Body)["error"].(map[string]any)
	if chat.Status != 402 || e["type"] != "insufficient_quota" || e["code"] != "budget_exceeded" {
		t.Errorf("chat: %d %s, want 402 in the shape of chat", chat.Status, chat.Body)
	}
}

// A run costs the amount in its answer, and the reserved one where the answer has none.
func TestRunsCostWhatTheirAnswersSay(t *testing.T) {
	const done = `{"id":"sync-1","status":"COMPLETED","delayTime":5,"executionTime":36000,"output":%s}`
	long := `{"text":"` + strings.Repeat(`{\"cost\":9,`, 8<<10) + `"}`
	events := func(last string) string {
		return "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n" + strings.Repeat(": "+strings.Repeat("x", 1000)+"\n\n", 40) + last + "data: [DONE]\n\n"
	}
	const usage = `"usage":{"prompt_tokens":100,"completion_tokens":200,"total_tokens":300}`
	const response, accounted = `{"model":"llm","input":"a","max_output_tokens":300}`, `"usage":{"input_tokens":100,"output_tokens":200}`
	stream := strings.Replace(hello, "{", `{"stream":true,`, 1)
	for name, tc := range map[string]struct {
		target, body  string
		status        int
		answer        string
		spent, header string
	}{
		"by run":                    {"/v2/img/runsync", `{"input":{}}`, 200, fmt.Sprintf(done, `{}`), "0.3", "0.3"},
		"by execution":              {"/v2/own/runsync", `{"input":{}}`, 200, fmt.Sprintf(done, `{"cost":0.0001}`), "0.036", "0.036"},
		"of a long answer":          {"/v2/own/runsync", `{"input":{}}`, 200, fmt.Sprintf(done, long), "0.036", "0.6"},
		"by second":                 {"/v2/clip/runsync", `{"input":{"duration":2.5}}`, 200, fmt.Sprintf(done, `{}`), "0.25", "0.25"},
		"as the platform says":      {"/v2/kling-v2-1-i2v-pro/runsync", `{"input":{"prompt":"p"}}`, 200, fmt.Sprintf(done, `{"video_url":"u","cost":0.35}`), "0.35", "0.35"},
		"as a worker says":          {"/v2/clip/runsync", `{"input":{}}`, 200, fmt.Sprintf(done, `{"video_url":"u","cost":0.0001}`), "0.5", "0.5"},
		"failed":                    {"/v2/img/runsync", `{"input":{}}`, 200, `{"id":"sync-1","status":"FAILED","executionTime":10,"error":"e"}`, "0", "0"},
		"failed while it ran":       {"/v2/own/runsync", `{"input":{}}`, 200, `{"id":"sync-1","status":"FAILED","executionTime":36000,"error":"e"}`, "0.036", "0.036"},
		"a public model that fails": {"/v2/img/runsync", `{"input":{}}`, 400, `{"id":"sync-1","status":"FAILED","error":"e"}`, "0", ""},
		"refused":                   {"/v2/img/run", `{"input":{}}`, 429, `{"error":"slow down"}`, "0", ""},
		"a failure of the platform": {"/v2/img/run", `{"input":{}}`, 500, `{"error":"e"}`, "0", ""},
		"of unknown end":            {"/v2/img/run", `{"input":{}}`, 502, `{"error":"e"}`, "0.3", "0.3"},
		"not what is read":          {"/v2/img/run", `{"input":{}}`, 200, `{"id":1}`, "0.3", "0.3"},
		"chat":                      {"/v2/llm/openai/v1/chat/completions", hello, 200, `{"choices":[],` + usage + `}`, "0.021", "0.021"},
		"chat without usage":        {"/v2/llm/openai/v1/chat/completions", hello, 200, `{"choices":[]}`, "0.00245", "0.00245"},
		"events":                    {"/v2/llm/openai/v1/chat/completions", stream, 200, events(`data: {"choices":[],` + usage + "}\n\n"), "0.021", "0.00259"},
		"a response":                {"/v2/llm/openai/v1/responses", response, 200, `{"object":"response",` + accounted + `}`, "0.021", "0.021"},
		"a response in events":      {"/v2/llm/openai/v1/responses", strings.Replace(response, "{", `{"stream":true,`, 1), 200, events(`data: {"type":"response.completed","response":{` + accounted + "}}\n\n"), "0.021", "0.03065"},
		"events without usage":      {"/v2/llm/openai/v1/chat/completions", stream, 200, events(""), "0.00259", "0.00259"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, policies(priced), upstream(t, answering(&calls, func(string) (int, string) { return tc.status, tc.answer })))
			const history = "/admin/spend/history?org=acme&kind=job&by=resource"
			asOperator[money.Costs](t, r, "GET", history) // which goes on from here
			a := r.ask(t, "POST", tc.target, "key_research", tc.body)
			if a.Status != tc.status || a.Header.Get("X-Tollgate-Cost") != tc.header {
				t.Errorf("%d %.200s, cost %q; want %d and %q", a.Status, a.Body, a.Header.Get("X-Tollgate-Cost"), tc.status, tc.header)
			}
			if got := a.Header.Get("X-Tollgate-Budget"); (got == "") != (tc.header == "") {
				t.Errorf("budget header %q", got)
			}
			r.spent(t, tc.spent, "0")
			costs := asOperator[money.Costs](t, r, "GET", history)
			if costs.Total != tc.spent || tc.spent != "0" && (len(costs.Rows) != 1 || !strings.Contains(tc.target, "/"+costs.Rows[0].Resource+"/")) {
				t.Errorf("history: %+v, want %s for the endpoint", costs, tc.spent)
			}
		})
	}
}

// A job that goes on holds the most that it may cost until an answer says that it has ended, and
// its repeats say nothing new.
func TestJobsAreHeldUntilTheyEnd(t *testing.T) {
	var calls atomic.Int64
	var status atomic.Value
	status.Store("IN_PROGRESS")
	r := newRig(t, policies(priced), upstream(t, answering(&calls, func(path string) (int, string) {
		switch {
		case strings.HasSuffix(path, "/run"), strings.Contains(path, "/retry/"):
			return 200, `{"id":"job-1","status":"IN_QUEUE"}`
		case strings.HasSuffix(path, "/runsync"):
			return 200, `{"id":"sync-9","status":"IN_PROGRESS"}`
		case strings.Contains(path, "/stream/"), strings.Contains(path, "/cancel/"):
			return 200, fmt.Sprintf(`{"id":"job-1","status":%q,"stream":[]}`, status.Load())
		}
		return 200, fmt.Sprintf(`{"id":"job-1","status":%q,"executionTime":36000}`, status.Load())
	})))
	r.want(t, 200, "POST", "/v2/own/run", `{"input":{},"policy":{"executionTimeout":120000}}`)
	r.spent(t, "0", "0.12")
	r.want(t, 200, "GET", "/v2/own/status/job-1", "")
	r.want(t, 200, "POST", "/v2/own/runsync?wait=1000", `{"input":{},"policy":{"executionTimeout":120000}}`)
	r.spent(t, "0", "0.24")
	if got := asOperator[money.Reconciled](t, r, "POST", "/admin/spend/reconcile?org=acme"); got.Released+got.Found+got.Open != 0 {
		t.Errorf("the reconciler ended holds of jobs: %+v", got)
	}
	status.Store("COMPLETED")
	r.want(t, 200, "GET", "/v2/own/stream/job-1", "") // does not say how long it took
	r.spent(t, "0", "0.24")
	for range 2 {
		r.want(t, 200, "GET", "/v2/own/status/job-1", "")
		r.spent(t, "0.036", "0.12")
	}
	r.want(t, 200, "GET", "/v2/img/status/job-1", "") // is another's job
	r.want(t, 200, "GET", "/v2/own/status-sync/sync-9", "")
	r.spent(t, "0.072", "0")
	r.want(t, 200, "POST", "/v2/img/run", `{"input":{}}`)
	r.spent(t, "0.072", "0.3")
	status.Store("CANCELLED")
	r.want(t, 200, "POST", "/v2/img/cancel/job-1", "")
	r.spent(t, "0.072", "0.3") // it may have run
	status.Store("FAILED")
	r.want(t, 200, "GET", "/v2/img/status/job-1", "")
	r.spent(t, "0.072", "0")
	r.want(t, 200, "POST", "/v2/img/retry/job-1", "")
	r.spent(t, "0.072", "0.3")
	status.Store("COMPLETED")
	r.want(t, 200, "GET", "/v2/img/status/job-1", "")
	r.spent(t, "0.372", "0")
}

// The most that a priced run may cost must be known where a budget of a day or month applies.
func TestARunWhoseCostIsNotKnown(t *testing.T) {
	var calls atomic.Int64
	answer := upstream(t, answering(&calls, func(string) (int, string) { return 200, `{"id":"job-1","status":"IN_QUEUE"}` }))
	const body = `{"input":{"duration":"5"}}`
	r := newRig(t, policies(priced), answer)
	a := r.ask(t, "POST", "/v2/clip/run", "key_research", body)
	if a.Status != 403 || calls.Load() != 0 || !strings.Contains(fmt.Sprint(decoded(t, a.Body)["error"]), "cannot determine the maximum cost of this run") {
		t.Errorf("%d %s and %d calls, want 403", a.Status, a.Body, calls.Load())
	}
	counts := newRig(t, policies(strings.Replace(priced, "per_day: 1", "gpus: 1", 1)), answer)
	if a := counts.ask(t, "POST", "/v2/clip/run", "key_research", body); a.Status != 200 {
		t.Errorf("without such a budget: %d %s, want 200", a.Status, a.Body)
	}
}

// The policy run_cost goes by the prices that the ledger reserves by.
func TestPoliciesGoByThePricesOfRuns(t *testing.T) {
	var calls atomic.Int64
	r := newRig(t, policies(priced+"\n    policies: [{policy: run_cost, params: {max_usd_per_run: 0.45}}]"),
		upstream(t, answering(&calls, func(string) (int, string) { return 200, `{"id":"job-1","status":"IN_QUEUE"}` })))
	for _, tt := range []struct {
		target, body string
		status       int
		says         string
	}{
		{"/v2/img/run", `{"input":{}}`, 200, ""},
		{"/v2/clip/run", `{"input":{"duration":4}}`, 200, ""},
		{"/v2/clip/run", `{"input":{}}`, 403, "0.50 USD per run exceeds the limit of 0.45 USD"},
		{"/v2/unpriced/run", `{"input":{}}`, 403, "the price of a run of unpriced is unknown"},
	} {
		if a := r.ask(t, "POST", tt.target, "key_research", tt.body); a.Status != tt.status || !strings.Contains(a.Body, tt.says) {
			t.Errorf("%s %s: %d %s, want %d %s", tt.target, tt.body, a.Status, a.Body, tt.status, tt.says)
		}
	}
	r.spent(t, "0", "0.7")
}

// A job that its caller never asks for again is asked for by the reconciler.
func TestTheReconcilerAsksForJobs(t *testing.T) {
	var calls atomic.Int64
	var status atomic.Value
	status.Store("IN_PROGRESS")
	r := newRig(t, policies(priced), upstream(t, answering(&calls, func(path string) (int, string) {
		if strings.HasSuffix(path, "/run") {
			return 200, `{"id":"a/b c","status":"IN_QUEUE"}`
		}
		if path != "/v2/own/status/a/b c" {
			t.Errorf("the platform was asked for %s", path)
		}
		return 200, fmt.Sprintf(`{"id":"a/b c","status":%q,"executionTime":36000}`, status.Load())
	})))
	r.want(t, 200, "POST", "/v2/own/run", `{"input":{}}`)
	reconcile := func(found int) {
		t.Helper()
		if got := asOperator[money.Reconciled](t, r, "POST", "/admin/spend/reconcile?org=acme"); got.Found != found || got.Released+got.Open != 0 {
			t.Errorf("%+v, want %d holds carried out", got, found)
		}
	}
	reconcile(0)
	r.spent(t, "0", "0.6")
	status.Store("COMPLETED")
	reconcile(1)
	r.spent(t, "0.036", "0")
	reconcile(0)
	r.spent(t, "0.036", "0")
}

// A job that the platform no longer knows costs the reserved amount. The platform forgets the jobs of a deleted endpoint.
func TestTheReconcilerChargesForgottenJobs(t *testing.T) {
	var calls atomic.Int64
	r := newRig(t, policies(priced), upstream(t, answering(&calls, func(path string) (int, string) {
		if strings.HasSuffix(path, "/run") {
			return 200, `{"id":"job-1","status":"IN_QUEUE"}`
		}
		return 404, `{"error":"endpoint not found"}`
	})))
	r.want(t, 200, "POST", "/v2/own/run", `{"input":{}}`)
	for found, spent := range [][2]string{{"0", "0.6"}, {"0.6", "0"}} { // at first, the platform may not list the job yet
		if got := asOperator[money.Reconciled](t, r, "POST", "/admin/spend/reconcile?org=acme"); got.Found != found || got.Released != 0 {
			t.Errorf("%+v, want %d holds carried out", got, found)
		}
		r.spent(t, spent[0], spent[1])
		r.redis.SetTime(time.Now().Add(2 * time.Minute))
	}
}
