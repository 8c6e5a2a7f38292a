package runs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/test/world"
)

// TestPolicies: a run that the organisation does not want is refused by name, before it reaches
// the platform, and said beforehand by an explanation.
func TestPolicies(t *testing.T) {
	r := newRig(t, policies(`policies:
      - {policy: run_endpoints, params: {endpoints: [flux, wan-2-5, llm], models: [small]}}
      - {policy: run_limits, params: {max_tokens: 100, max_execution_ms: 60000, max_ttl_ms: 90000, max_duration_seconds: 8}}
      - {policy: run_cost, params: {max_usd_per_run: 0.5, prices: {other: {usd_per_run: 0.02}, flux: {usd_per_run: 0.02}, wan-2-5: {usd_per_second: 0.1, default_seconds: 5}}, endpoints: [llm]}}`))
	for name, tc := range map[string]struct{ target, body, policy, field string }{
		"endpoint":       {"/v2/other/run", `{"input":{}}`, "run_endpoints", ""},
		"model":          {"/v2/llm/openai/v1/chat/completions", `{"model":"large","messages":[{"role":"user"}]}`, "run_endpoints", "/model"},
		"model of a job": {"/v2/llm/run", `{"input":{"openai_input":{"model":"large"}}}`, "run_endpoints", "/input/openai_input/model"},
		"escaped name":   {"/v2/llm/run", `{"input":{"\u006dodel":"large"}}`, "run_endpoints", "/input/model"},
		"tokens":         {"/v2/llm/runsync", `{"input":{"sampling_params":{"max_tokens":101}}}`, "run_limits", "/input/sampling_params/max_tokens"},
		"tokens of chat": {"/v2/llm/openai/v1/completions", `{"model":"small","prompt":"a","max_tokens":1000}`, "run_limits", "/max_tokens"},
		"time":           {"/v2/llm/run", `{"input":{},"policy":{"executionTimeout":60001}}`, "run_limits", "/policy/executionTimeout"},
		"life":           {"/v2/llm/run", `{"input":{},"policy":{"ttl":90001}}`, "run_limits", "/policy/ttl"},
		"length":         {"/v2/llm/run", `{"input":{"duration":9}}`, "run_limits", "/input/duration"},
		"cost":           {"/v2/wan-2-5/run", `{"input":{"duration":6}}`, "run_cost", "/input"},
		"webhook":        {"/v2/llm/run", `{"input":{},"webhook":"https://169.254.169.254/x"}`, "run_webhooks", "/webhook"},
		"second webhook": {"/v2/llm/runsync", `{"input":{},"webhookV2":"https://2852039166/"}`, "run_webhooks", "/webhookV2"},
		"store":          {"/v2/llm/run", `{"input":{},"s3Config":{"endpointUrl":"https://169.254.169.254/x"}}`, "run_webhooks", "/s3Config/endpointUrl"},
		"plain store":    {"/v2/llm/runsync", `{"input":{},"s3Config":{"endpointUrl":"http://store.example.com"}}`, "run_webhooks", "/s3Config/endpointUrl"},
	} {
		t.Run(name, func(t *testing.T) {
			a := r.ask(t, "POST", tc.target, "key_research", tc.body)
			list, _ := decoded(t, a.Body)["policies"].([]any)
			var got []string
			for _, v := range list {
				m, _ := v.(map[string]any)
				field, _ := m["field"].(string)
				got = append(got, fmt.Sprint(m["policy"], " ", field))
			}
			if diff := cmp.Diff([]string{tc.policy + " " + tc.field}, got); a.Status != 403 || diff != "" {
				t.Errorf("%d %s; denials (-want +got):\n%s", a.Status, a.Body, diff)
			}
			report, err := r.gateway.Questions().Explain(t.Context(), &operator.ExplainBody{Method: "POST", Path: tc.target, Key: "key_research", Body: tc.body})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(report)
			if err != nil || report.Status != 403 || !strings.Contains(string(text), tc.policy) {
				t.Errorf("explained: %s, %v; want a denial by %s", text, err, tc.policy)
			}
		})
	}
	for _, c := range r.platform.Calls() {
		if c.Method == "POST" {
			t.Errorf("%s %s reached the platform", c.Method, c.Path)
		}
	}
}

// TestTheMostThatARunProduces: by whichever member a body multiplies its output, the policies and
// the ledger see the same most.
func TestTheMostThatARunProduces(t *testing.T) {
	const limits = `policies:
      - {policy: run_limits, params: {max_tokens: 100}}
    endpoints: min
    budget: {per_day: 100}
    prices: {runs: {llm: {usd_per_million_tokens: 10000, usd_per_million_input_tokens: 0.000001}}}`
	const cost = `policies:
      - {policy: run_cost, params: {max_usd_per_run: 1, prices: {llm: {usd_per_million_tokens: 10000, default_tokens: 1}}}}`
	var calls atomic.Int64
	up := upstream(t, answering(&calls, func(string) (int, string) { return 200, `{}` }))
	byTokens, byCost := newRig(t, policies(limits), up), newRig(t, policies(cost), up)
	ask := func(r *rig, route, body string) world.Answer {
		return r.ask(t, "POST", "/v2/llm/"+route, "key_research", body)
	}
	const chat, text = "openai/v1/chat/completions", "openai/v1/completions"
	for _, tc := range []struct{ route, body, field string }{ // %d is tokens of each of two
		{chat, `{"model":"m","messages":[{"role":"user"}],"max_tokens":%d,"n":2}`, "/max_tokens"},
		{chat, `{"model":"m","messages":[{"role":"user"}],"max_completion_tokens":%d,"best_of":2}`, "/max_completion_tokens"},
		{text, `{"model":"m","prompt":["a","b"],"max_tokens":%d}`, "/max_tokens"},
		{"run", `{"input":{"max_new_tokens":%d,"n":2}}`, "/input/max_new_tokens"},
		{"run", `{"input":{"max_tokens":%d,"batch":["a","b"]}}`, "/input/max_tokens"},
		{"run", `{"input":{"prompt":["a","b"],"sampling_params":{"max_tokens":%d}}}`, "/input/sampling_params/max_tokens"},
		{"runsync", `{"input":{"sampling_params":{"max_tokens":%d,"n":1,"best_of":2}}}`, "/input/sampling_params/max_tokens"},
		{"runsync", `{"input":{"openai_input":{"max_tokens":%d,"n":2}}}`, "/input/openai_input/max_tokens"},
	} {
		fits, over := fmt.Sprintf(tc.body, 50), fmt.Sprintf(tc.body, 51)
		if a := ask(byTokens, tc.route, fits); a.Status != 200 || a.Header.Get("X-Tollgate-Cost") != "1.000001" {
			t.Errorf("%s: %d %s, cost %s; want 200 and 1.000001", fits, a.Status, a.Body, a.Header.Get("X-Tollgate-Cost"))
		}
		if a := ask(byTokens, tc.route, over); a.Status != 403 || !strings.Contains(a.Body, `"policy":"run_limits"`) || !strings.Contains(a.Body, `"field":"`+tc.field+`"`) {
			t.Errorf("%s: %d %s, want a denial by run_limits of %s", over, a.Status, a.Body, tc.field)
		}
		if a := ask(byCost, tc.route, fits); a.Status != 200 {
			t.Errorf("%s: %d %s, want 200", fits, a.Status, a.Body)
		}
		if a := ask(byCost, tc.route, over); a.Status != 403 || !strings.Contains(a.Body, "1.02 USD per run exceeds the limit of 1.00 USD") {
			t.Errorf("%s: %d %s, want a denial by run_cost", over, a.Status, a.Body)
		}
	}
}

// TestDefaultsOfTokens: a body that names no maximum gets one, where its model reads it, and
// each choice gets its part.
func TestDefaultsOfTokens(t *testing.T) {
	r := newRig(t, policies(`policies: [{policy: run_limits, params: {max_tokens: 100, set_defaults: true}}]`))
	base := "/v2/" + r.endpoint(t)
	for body, want := range map[string]string{
		`{"input":{"prompt":"p"}}`:                            `{"input":{"prompt":"p","sampling_params":{"max_tokens":100}}}`,
		`{"input":{"prompt":["p","q"]}}`:                      `{"input":{"prompt":["p","q"],"sampling_params":{"max_tokens":50}}}`,
		`{"input":{"messages":[],"sampling_params":{"n":3}}}`: `{"input":{"messages":[],"sampling_params":{"max_tokens":33,"n":3}}}`,
		`{"input":{"openai_input":{"max_tokens":null}}}`:      `{"input":{"openai_input":{"max_tokens":100}}}`,
		`{"input":{"prompt":"p","sampling_params":{},"n":1}}`: `{"input":{"n":1,"prompt":"p","sampling_params":{"max_tokens":100}}}`,
		`{"input":{"prompt":"p","sampling_params":null}}`:     `{"input":{"prompt":"p","sampling_params":{"max_tokens":100}}}`,
		`{"input":{"image":"i"}}`:                             `{"input":{"image":"i"}}`,
		`{"input":{"prompt":"p","max_new_tokens":7}}`:         `{"input":{"max_new_tokens":7,"prompt":"p"}}`,
	} {
		r.want(t, 200, "POST", base+"/run", body)
		calls := r.platform.CallsTo("run")
		if diff := cmp.Diff(decoded(t, want), decoded(t, string(calls[len(calls)-1].Body))); diff != "" {
			t.Errorf("%s: what the platform got (-want +got):\n%s", body, diff)
		}
	}
	if a := r.ask(t, "POST", base+"/run", "key_research", `{"input":{"prompt":"p","n":101}}`); a.Status != 403 {
		t.Errorf("more choices than tokens: %d %s, want 403", a.Status, a.Body)
	}
}

// TestChanges: the worker gets the values that policies set.
func TestChanges(t *testing.T) {
	r := newRig(t, policies(`policies:
      - {policy: run_limits, params: {max_tokens: 100, max_execution_ms: 60000, set_defaults: true}}
      - {policy: run_safety, params: {models: []}}`))
	base := "/v2/" + r.endpoint(t)
	a := r.ask(t, "POST", base+"/run", "key_research", `{"input":{"enable_safety_checker":false,"text":"`+strings.Repeat("x", 1<<20)+`"}}`)
	if got := a.Header.Values("X-Tollgate-Mutation"); a.Status != 200 || len(got) != 2 {
		t.Errorf("%d %s, changes %q, want two", a.Status, a.Body, got)
	}
	r.want(t, 200, "POST", base+"/openai/v1/chat/completions", strings.Replace(hello, `"max_tokens":16,`, "", 1))
	got := []string{strings.ReplaceAll(string(r.platform.CallsTo("run")[0].Body), strings.Repeat("x", 1<<20), "X"), string(r.platform.CallsTo("chatCompletions")[0].Body)}
	want := []string{
		`{"input":{"enable_safety_checker":true,"text":"X"},"policy":{"executionTimeout":60000}}`,
		`{"max_tokens":100,"messages":[{"content":"good morning","role":"user"}],"model":"llm"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the platform got (-want +got):\n%s", diff)
	}
}

// TestJudgedIsSent: whichever part of an input policies read and change, however it is spelled,
// the worker gets the value that they saw; a refusal says the same as of the decoded input.
func TestJudgedIsSent(t *testing.T) {
	r := newRig(t, policies(`policies: [{policy: run_limits, params: {max_tokens: 100}}, {policy: run_safety, params: {models: []}}]`))
	base := "/v2/" + r.endpoint(t)
	calls := 0
	rapid.Check(t, func(rt *rapid.T) {
		filler := strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 5000}).Draw(rt, "filler"))
		tokens := rapid.IntRange(90, 110).Draw(rt, "tokens")
		safety := rapid.SampledFrom([]string{"true", "false", ""}).Draw(rt, "safety")
		space := rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(rt, "space")
		name := rapid.SampledFrom([]string{"max_tokens", "max\\u005ftokens"}).Draw(rt, "name")
		inner := fmt.Sprintf(`{%s"%s":%s%d,"filler":["%s",{"b":1,"a":[]}]}`, space, name, space, tokens, filler)
		input := `{"sampling_params":` + inner
		if safety != "" {
			input += `,"enable_safety_checker":` + space + safety
		}
		input += "}"
		a := r.ask(t, "POST", base+"/run", "key_research", `{"input":`+input+`}`)
		if denied := tokens > 100; denied {
			if a.Status != 403 || !strings.Contains(a.Body, `"/input/sampling_params/max_tokens"`) {
				rt.Fatalf("%s: %d %s, want a denial", input, a.Status, a.Body)
			}
			return
		}
		calls++
		sent := r.platform.CallsTo("run")
		if a.Status != 200 || len(sent) != calls {
			rt.Fatalf("%s: %d %s, %d calls", input, a.Status, a.Body, len(sent))
		}
		want := decoded(t, input)
		if safety == "false" {
			want["enable_safety_checker"] = true
		}
		if diff := cmp.Diff(any(want), decoded(t, string(sent[calls-1].Body))["input"]); diff != "" {
			rt.Fatalf("%s: the worker gets something else (-want +got):\n%s", input, diff)
		}
	})
}

// TestClass: a class counts runs beside the caller's own quotas.
func TestClass(t *testing.T) {
	r := newRig(t, policies(`policies: []
    classes: [{id: runs, operations: [run, runsync, chatCompletions, completions], per: key, limits: {minute: 2}}]`))
	base := "/v2/" + r.endpoint(t)
	for range 2 {
		r.want(t, 200, "POST", base+"/run", `{"input":{}}`)
	}
	a := r.ask(t, "POST", base+"/openai/v1/chat/completions", "key_research", hello)
	e, _ := decoded(t, a.Body)["error"].(map[string]any)
	if a.Status != 429 || e["type"] != "rate_limit_error" || a.Header.Get("Retry-After") == "" {
		t.Errorf("a third run: %d %v %s", a.Status, a.Header, a.Body)
	}
	r.want(t, 200, "GET", base+"/health", "")
}

// TestSecretsStayHidden: neither the credentials of a job's bucket, nor its webhook,
// nor its input are in any record, unless inputs are wanted.
func TestSecretsStayHidden(t *testing.T) {
	for _, inputs := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "decisions.log")
		r := newRig(t, top(fmt.Sprintf("decisions: {file: {path: %q}, inputs: %t}", file, inputs)))
		end := world.Run(t, r.gateway)
		base := "/v2/" + r.endpoint(t)
		a := r.ask(t, "POST", base+"/run", "key_research", `{"input":{"text":"private words"},"webhook":"https://hooks.example/SECRET1",
			"s3Config":{"accessId":"SECRET2","accessSecret":"SECRET3","bucketName":"b","endpointUrl":"https://SECRET4.example"}}`)
		r.want(t, 200, "POST", base+"/openai/v1/chat/completions", strings.Replace(hello, "good morning", "private words", 1))
		refused := r.ask(t, "POST", base+"/run", "key_research", `{"input":{},"s3Config":{"accessSecret":["SECRET5"]}}`)
		explained, err := r.gateway.Questions().Explain(t.Context(), &operator.ExplainBody{
			Method: "POST", Path: base + "/run", Key: "key_research", Body: `{"input":{"text":"private words"},"s3Config":{"accessSecret":"SECRET6"}}`,
		})
		if err != nil {
			t.Fatal(err)
		}
		report, err := json.Marshal(explained)
		if err != nil {
			t.Fatal(err)
		}
		r.close()
		end()
		log, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(log), `"operation":"chatCompletions"`) {
			t.Fatalf("the decision log: %s, %v", log, err)
		}
		if got := strings.Contains(string(log), "private words"); got != inputs {
			t.Errorf("inputs: %t, and the decision log has them: %t", inputs, got)
		}
		everything := a.Body + fmt.Sprint(a.Header) + refused.Body + string(report) + r.logs.String() + string(log)
		if strings.Contains(everything, "SECRET") || strings.Contains(everything, canary) {
			t.Errorf("a secret is in what is told:\n%s", everything)
		}
	}
}

// TestAddresses: records of endpoints name the gateway, and the named addresses work.
func TestAddresses(t *testing.T) {
	r := newRig(t, top(`public_url: "https://gateway.test"`))
	id := r.endpoint(t)
	list, _ := r.want(t, 200, "GET", "/v2/serverless", "")["endpoints"].([]any)
	first, _ := list[0].(map[string]any)
	for name, record := range map[string]map[string]any{"list": first, "one": r.want(t, 200, "GET", "/v2/serverless/"+id, "")} {
		urls, _ := record["requestUrls"].(map[string]any)
		want := map[string]any{}
		for member, path := range map[string]string{
			"run": "/run", "runSync": "/runsync", "status": "/status/{job_id}", "stream": "/stream/{job_id}", "cancel": "/cancel/{job_id}",
			"retry": "/retry/{job_id}", "purgeQueue": "/purge-queue", "health": "/health",
		} {
			want[member] = "https://gateway.test/v2/" + id + path
		}
		if diff := cmp.Diff(want, urls); diff != "" {
			t.Errorf("%s: requestUrls (-want +got):\n%s", name, diff)
		}
	}
	for _, ask := range []struct{ method, target, body string }{
		{"GET", "/v1/endpoints/" + id, ""}, {"POST", "/graphql", `{"query":"{ myself { endpoints { id name } } }"}`},
	} {
		if a := r.ask(t, ask.method, ask.target, "key_research", ask.body); a.Status != 200 || strings.Contains(a.Body, r.runs) {
			t.Errorf("%s: %d %s, which must not name the platform", ask.target, a.Status, a.Body)
		}
	}
}
