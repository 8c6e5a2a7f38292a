package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/money"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// Runs of public models are held against budgets by the prices that the platform publishes, by
// every route, and cost the amount that the platform gives in the end.
func TestPublicModelsAreHeldAgainstBudgets(t *testing.T) {
	r := newRig(t, top("run: {batches: true}"), policies("budget: {per_day: 0.6}"))
	const lora = `{"input":{"prompt":"p","image":"https://a.test/i.png","duration":%s}}`
	for _, tt := range []struct {
		target, body  string
		status        int
		cost, accrued string
	}{
		{"/v2/black-forest-labs-flux-1-schnell/runsync", `{"input":{"prompt":"p"}}`, 200, "0.0024", "0.0024"}, // 0.002517 held
		{"/v2/p-image-t2i/runsync", `{"input":{"prompt":"p"}}`, 200, "0.005", "0.0074"},
		{"/v2/minimax-speech-02-hd/runsync", `{"input":{"prompt":"0123456789"}}`, 200, "0.0005", "0.0079"},
		{"/v2/wan-2-2-t2v-720-lora/runsync", fmt.Sprintf(lora, "5"), 200, "0.35", "0.3579"},
		{"/v2/wan-2-2-t2v-720-lora/runsync", fmt.Sprintf(lora, "8"), 402, "", "0.3579"},
		{"/v2/wan-2-2-t2v-720-lora/run", fmt.Sprintf(lora, "0.1"), 402, "", "0.3579"},
		{"/v2/wan-2-2-t2v-720-lora/run", fmt.Sprintf(lora, `"5"`), 403, "", "0.3579"},
		{"/v2/wan-2-2-t2v-720-lora/run", fmt.Sprintf(lora, `100,"duration":1`), 400, "", "0.3579"},
		{"/v2/sora-2-i2v/run", `{"input":{"duration":4}}`, 402, "", "0.3579"},
		{"/v2/moonshot-kimi/openai/v1/chat/completions", strings.Replace(hello, "16", "20000", 1), 402, "", "0.3579"},
		{"/v2/moonshot-kimi/openai/v1/completions", `{"model":"m","prompt":["a","b"],"max_tokens":10000}`, 402, "", "0.3579"},
		{"/v2/p-image-t2i/batch", "[" + strings.Repeat(`{"input":{"num_images":7}},`, 6) + `{"input":{"num_images":7}}]`, 402, "", "0.3579"},
		{"/v2/p-image-t2i/batch/b1/requests", `{"requests":[{"input":{"num_images":7}},{"input":{"n":42}}]}`, 402, "", "0.3579"},
		{"/v2/wan-2-6-i2v/retry/j1", "{}", 403, "", "0.3579"}, // of what, is not known
	} {
		a := r.ask(t, "POST", tt.target, "key_research", tt.body)
		if got := a.Header.Get("X-Tollgate-Cost"); a.Status != tt.status || got != tt.cost {
			t.Errorf("%s %s: %d %s, cost %q; want %d and %q", tt.target, tt.body, a.Status, a.Body, got, tt.status, tt.cost)
		}
		r.spent(t, tt.accrued, "0")
	}
	a := r.ask(t, "POST", "/v2/p-image-t2i/run", "key_research", `{"input":{"prompt":"p"}}`)
	if a.Status != 200 || a.Header.Get("X-Tollgate-Cost") != "0.005" {
		t.Errorf("a job: %d %v %s", a.Status, a.Header, a.Body)
	}
	r.spent(t, "0.3579", "0.005")
	world.Until(t, "the job ends", func() bool {
		return r.want(t, 200, "GET", fmt.Sprint("/v2/p-image-t2i/status/", decoded(t, a.Body)["id"]), "")["status"] == "COMPLETED"
	})
	r.spent(t, "0.3629", "0")
}

// The cost of a run by the platform's account is believed within bounds.
func TestThePlatformSaysWhatARunCost(t *testing.T) {
	for name, tt := range map[string]struct{ model, output, spent string }{
		"less than was held": {"wan-2-5", `{"cost":0.25}`, "0.25"},
		"more than was held": {"p-image-t2i", `{"cost":0.006}`, "0.006"},
		"in a list":          {"qwen3-32b-awq", `[{"choices":[{"tokens":["a"]}],"cost":0.001,"usage":{"input":10,"output":90}}]`, "0.001"},
		"tokens alone":       {"qwen3-32b-awq", `[{"usage":{"input":10,"output":90}}]`, "0.001"},
		"by resolution":      {"p-video", `{"video_url":"u"}`, "0.1"},
		"negative":           {"wan-2-5", `{"cost":-1}`, "1.5"},
		"absurd":             {"wan-2-5", `{"cost":123456}`, "1.5"},
		"no number":          {"wan-2-5", `{"cost":"0"}`, "1.5"},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, policies("budget: {per_month: 10}"), upstream(t, answering(&calls, func(string) (int, string) {
				return 200, `{"id":"sync-1","status":"COMPLETED","executionTime":10,"output":` + tt.output + `}`
			})))
			r.want(t, 200, "POST", "/v2/"+tt.model+"/runsync", `{"input":{"prompt":"p"}}`)
			r.spent(t, tt.spent, "0")
		})
	}
}

// A job of a public model that its caller never asks for again costs the amount that the platform
// tells the reconciler.
func TestTheReconcilerAsksWhatAPublicModelCost(t *testing.T) {
	var calls atomic.Int64
	r := newRig(t, policies("budget: {per_day: 2}"), upstream(t, answering(&calls, func(path string) (int, string) {
		if strings.HasSuffix(path, "/run") {
			return 200, `{"id":"job-1","status":"IN_QUEUE"}`
		}
		return 200, `{"id":"job-1","status":"COMPLETED","output":{"video_url":"u","cost":0.25}}`
	})))
	r.want(t, 200, "POST", "/v2/wan-2-5/run", `{"input":{}}`)
	r.spent(t, "0", "1.5")
	if got := asOperator[money.Reconciled](t, r, "POST", "/admin/spend/reconcile?org=acme"); got.Found != 1 {
		t.Errorf("%+v, want one hold carried out", got)
	}
	r.spent(t, "0.25", "0")
	did := asOperator[struct{ Decisions []explain.Summary }](t, r, "GET", "/admin/decisions?org=acme&own=true").Decisions
	if len(did) != 1 || did[0].Operation != "run" || !strings.Contains(did[0].Own.Did, "ended the reservation of run of key key_research") {
		t.Errorf("by itself the gateway did %+v, want one reservation ended", did)
	}
}

// A run without an endpoint of the organisation and without a known price is refused where a
// budget for accrued cost applies.
func TestModelsOfUnknownPrice(t *testing.T) {
	const body = `{"input":{"prompt":"p"}}`
	r := newRig(t, policies("budget: {per_day: 1000}"))
	own := r.endpoint(t)
	if a := r.ask(t, "POST", "/v2/"+own+"/run", "key_research", body); a.Status != 200 || a.Header.Get("X-Tollgate-Cost") != "" {
		t.Errorf("an own endpoint: %d %v %s, want 200", a.Status, a.Header, a.Body)
	}
	const unpriced = "is unknown, so its cost cannot be checked against the budget"
	if a := r.ask(t, "POST", "/v2/kling-v2-6-std-motion-control/run", "key_research", body); a.Status != 403 || !strings.Contains(a.Body, unpriced) {
		t.Errorf("a public model of unknown price: %d %s, want 403", a.Status, a.Body)
	}
	var calls atomic.Int64
	newer := newRig(t, policies("budget: {per_day: 1000}"), upstream(t, answering(&calls, func(string) (int, string) { return 200, `{"jobs":{},"workers":{}}` })))
	if a := newer.ask(t, "POST", "/v2/newer-model/run", "key_research", body); a.Status != 403 || !strings.Contains(a.Body, unpriced) || calls.Load() != 1 {
		t.Errorf("a public model that the gateway does not know: %d %s after %d calls, want 403 after the one that reads its health", a.Status, a.Body, calls.Load())
	}

	r.platform.AddFault(platform.Fault{Operation: "getEndpoint", Kind: platform.FaultStatus, Status: 500})
	if a := r.ask(t, "POST", "/v2/another-model/run", "key_research", body); a.Status != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("while the platform does not say whose endpoint it is: %d %v %s, want 503", a.Status, a.Header, a.Body)
	}

	declared := newRig(t, policies("budget: {per_day: 1}\n    prices: {runs: {p-image-t2i: {usd_per_run: 2}}}"))
	if a := declared.ask(t, "POST", "/v2/p-image-t2i/run", "key_research", body); a.Status != 402 {
		t.Errorf("by the declared price: %d %s, want 402", a.Status, a.Body)
	}
	free := newRig(t, policies("budget: {per_day: 1}\n    prices: {runs: {p-image-t2i: {usd_per_run: 0}, no-such-model: {usd_per_million_tokens: 0}}}\n    policies: [{policy: run_cost, params: {max_usd_per_run: 0.001}}]"),
		upstream(t, answering(new(atomic.Int64), func(string) (int, string) { return 200, `{"id":"job-1","status":"IN_QUEUE"}` })))
	for _, model := range []string{"p-image-t2i", "no-such-model"} {
		if a := free.ask(t, "POST", "/v2/"+model+"/run", "key_research", body); a.Status != 200 {
			t.Errorf("free %s: %d %s, want 200", model, a.Status, a.Body)
		}
	}
	free.spent(t, "0", "0")
	counted := newRig(t, policies("budget: {gpus: 1}"))
	if a := counted.ask(t, "POST", "/v2/no-such-model/run", "key_research", body); a.Status != 404 {
		t.Errorf("without a budget in money: %d %s, want the platform's 404", a.Status, a.Body)
	}
}

// A run on a mistyped endpoint is answered 404 in the caller's dialect, whichever rule about costs would have refused the run, and
// nothing is asked of operators.
func TestARunOnAMistypedEndpointIsNotFound(t *testing.T) {
	for name, rules := range map[string]string{
		"budget":     "budget: {per_day: 1000}",
		"policy":     "policies: [{policy: run_cost, params: {max_usd_per_run: 0.3}}]",
		"approvable": "policies: [{policy: run_cost, approvable: true, params: {max_usd_per_run: 0.3}}]",
		"isolation":  "budget: {per_day: 1000}\n    isolation: {read: team}",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, policies(rules))
			for target, tt := range map[string]struct{ body, want string }{
				"/v2/no-such-model/runsync":                    {`{"input":{}}`, `{"error":"no endpoint or public model has this name"`},
				"/v2/no-such-model/retry/j1":                   {"{}", `{"error":"no endpoint or public model has this name"`},
				"/v2/no-such-model/openai/v1/chat/completions": {hello, `{"error":{"message":"no endpoint or public model has this name","type":"not_found_error"`},
			} {
				if a := r.ask(t, "POST", target, "key_research", tt.body); a.Status != 404 || !strings.HasPrefix(a.Body, tt.want) {
					t.Errorf("%s: %d %s, want 404 %s", target, a.Status, a.Body, tt.want)
				}
			}
			r.want(t, 404, "GET", "/v2/no-such-model/status/j1", "")
		})
	}
}

// The policy run_cost goes by published prices, without any of its own, a batch by its
// dearest run.
func TestRunCostGoesByPublishedPrices(t *testing.T) {
	var calls atomic.Int64
	r := newRig(t, top("run: {batches: true}"), policies("policies: [{policy: run_cost, params: {max_usd_per_run: 0.3}}]"),
		upstream(t, answering(&calls, func(string) (int, string) { return 200, `{"id":"job-1","status":"IN_QUEUE"}` })))
	for _, tt := range []struct {
		target, body string
		status       int
		says         string
	}{
		{"/v2/p-image-t2i/run", `{"input":{}}`, 200, ""},
		{"/v2/p-video/run", `{"input":{}}`, 200, ""},
		{"/v2/p-video/run", `{"input":{"duration":10,"resolution":"1080p"}}`, 403, "0.40 USD per run exceeds the limit of 0.30 USD"},
		{"/v2/wan-2-5/runsync", `{"input":{}}`, 403, "1.50 USD per run exceeds the limit of 0.30 USD"},
		{"/v2/wan-2-6-i2v/batch", `[{"input":{}},{"input":{"duration":2}}]`, 403, "0.50 USD per run exceeds"},
		{"/v2/p-video/batch", `[{"input":{}},{"input":{"duration":14}}]`, 200, ""},
		{"/v2/moonshot-kimi/openai/v1/chat/completions", strings.Replace(hello, "16", "20001", 1), 403, "USD per run exceeds"},
		{"/v2/p-video/run", `{"input":{"duration":"5"}}`, 403, "the price of a run of p-video is unknown"},
		{"/v2/other/run", `{"input":{}}`, 403, "the price of a run of other is unknown"},
	} {
		if a := r.ask(t, "POST", tt.target, "key_research", tt.body); a.Status != tt.status || !strings.Contains(a.Body, tt.says) {
			t.Errorf("%s %s: %d %s, want %d %s", tt.target, tt.body, a.Status, a.Body, tt.status, tt.says)
		}
	}
	report, err := r.gateway.Questions().Explain(t.Context(), &operator.ExplainBody{Method: "POST", Path: "/v2/p-video/run", Key: "key_research", Body: `{"input":{"resolution":"1080p"}}`})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(report); err != nil || !strings.Contains(string(text), "at most 0.2 USD per run") {
		t.Errorf("explained: %s, %v; want the price", text, err)
	}
}
