package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/schema"
	"github.com/tollgate-dev/tollgate/test/world"
)

// reference is every route of the run interface (reference platform-v2, sections 12.1,
// 12.6, 12.8 and 12.10), by the operation that the emulator takes it for.
const reference = `
run                POST   /v2/ID/run
runSync            POST   /v2/ID/runsync
status             GET    /v2/ID/status/job1
statusSync         GET    /v2/ID/status-sync/job1
stream             GET    /v2/ID/stream/job1
cancel             POST   /v2/ID/cancel/job1
retry              POST   /v2/ID/retry/job1
purgeQueue         POST   /v2/ID/purge-queue
health             GET    /v2/ID/health
requests           GET    /v2/ID/requests
chatCompletions    POST   /v2/ID/openai/v1/chat/completions
completions        POST   /v2/ID/openai/v1/completions
embeddings         POST   /v2/ID/openai/v1/embeddings
responses          POST   /v2/ID/openai/v1/responses
models             GET    /v2/ID/openai/v1/models
model              GET    /v2/ID/openai/v1/models/llm
model              GET    /v2/ID/openai/v1/models/owner/llm
balanced           GET    /lb/LB/any/path
balanced           DELETE /lb/LB/
createBatch        POST   /v2/ID/batch
listBatches        GET    /v2/ID/batch
getBatch           GET    /v2/ID/batch/b1
updateBatch        PUT    /v2/ID/batch/b1
addBatchRequests   POST   /v2/ID/batch/b1/requests
listBatchRequests  GET    /v2/ID/batch/b1/requests
deleteBatchRequest DELETE /v2/ID/batch/b1/requests/r1
finalizeBatch      POST   /v2/ID/batch/b1/finalize
cancelBatch        POST   /v2/ID/batch/b1/cancel
`

// bodies are those of the operations that need one.
var bodies = map[string]string{
	"run": `{"input":{}}`, "runSync": `{"input":{}}`, "chatCompletions": hello, "completions": `{"model":"llm","prompt":"a"}`, "embeddings": `{"model":"llm","input":["a","b c"]}`, "responses": `{"model":"llm","input":"a"}`,
	"createBatch": `[{"input":{}}]`, "updateBatch": `{"name":"a"}`, "addBatchRequests": `{"requests":[{"input":{}}]}`,
}

// TestRoutesOfTheReference: each route reaches the platform as itself, and each
// operation that the gateway describes is among them.
func TestRoutesOfTheReference(t *testing.T) {
	r := newRig(t, emulated(t), top("run: {batches: true}"), policies("policies: []\n    model_paths: [responses]"))
	ids := strings.NewReplacer("ID", r.endpoint(t), "LB", r.balanced(t))
	for line := range strings.Lines(strings.TrimSpace(reference)) {
		f := strings.Fields(line)
		before := len(r.platform.CallsTo(f[0]))
		a := r.ask(t, f[1], ids.Replace(f[2]), "key_research", bodies[f[0]])
		if after := len(r.platform.CallsTo(f[0])); after != before+1 {
			t.Errorf("%s %s: %d %s, and not at the platform", f[1], f[2], a.Status, a.Body)
		}
	}
	r.close()
	seen := map[string]bool{}
	for _, e := range r.logs.Exchanges(t) {
		seen[fmt.Sprint(e["operation"])] = true
	}
	api, err := schema.LoadRun()
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, op := range api.Operations() {
		if !seen[op.ID] {
			missing[op.ID] = true
		}
	}
	if len(missing) > 0 {
		t.Errorf("not in the reference: %v", slices.Sorted(maps.Keys(missing)))
	}
}

// TestBatches: jobs are collected, run together, and read; without the setting there
// are none.
func TestBatches(t *testing.T) {
	r := newRig(t, top("run: {batches: true}"), policies(`policies: [{policy: run_limits, params: {max_tokens: 100}}, {policy: run_safety, params: {models: []}}]`))
	base := "/v2/" + r.endpoint(t) + "/batch"
	made := r.want(t, 200, "POST", base, `[{"input":{"n":1,"enable_safety_checker":false}}]`)
	one := base + "/" + fmt.Sprint(made["id"])
	r.want(t, 200, "POST", one+"/requests", `{"requests":[{"input":{"n":2}},{"input":{"n":3}}]}`)
	r.want(t, 200, "PUT", one, `{"name":"first"}`)
	for name, tc := range map[string]struct {
		target, body string
		status       int
		says         string
	}{
		"tokens":          {base, `[{"input":{}},{"input":{"max_tokens":101}}]`, 403, `"/requests/1/input/max_tokens"`},
		"tokens added":    {one + "/requests", `{"requests":[{"input":{"sampling_params":{"max_tokens":101}}}]}`, 403, `"/requests/0/input/sampling_params/max_tokens"`},
		"escaped":         {base, `[{"\u0069nput":{"max\u005ftokens":101}}]`, 403, `"/requests/0/input/max_tokens"`},
		"a webhook":       {base, `[{"input":{},"webhook":"https://a.example"}]`, 422, "validation"},
		"twice":           {base, `[{"input":{},"input":{}}]`, 400, "JSON"},
		"no list":         {base, `{"input":{}}`, 422, "must be a list"},
		"no input":        {one + "/requests", `{"requests":[{}]}`, 422, "validation"},
		"of another name": {base + "/a%2Fb/finalize", "", 400, "path"},
	} {
		if a := r.ask(t, "POST", tc.target, "key_research", tc.body); a.Status != tc.status || !strings.Contains(a.Body, tc.says) {
			t.Errorf("%s: %d %s, want %d and %s", name, a.Status, a.Body, tc.status, tc.says)
		}
	}
	list, _ := r.want(t, 200, "GET", one+"/requests?limit=1&offset=2", "")["requests"].([]any)
	last, _ := list[0].(map[string]any)
	r.want(t, 200, "DELETE", fmt.Sprintf("%s/requests/%v", one, last["id"]), "")
	r.want(t, 200, "POST", one+"/finalize", "")
	var got map[string]any
	world.Until(t, "the batch has run", func() bool {
		got = r.want(t, 200, "GET", one, "")
		return got["requestCompleted"] == 2.0
	})
	if got["name"] != "first" || got["status"] != "FINALIZED" {
		t.Errorf("the batch: %v", got)
	}
	list, _ = r.want(t, 200, "GET", one+"/requests", "")["requests"].([]any)
	first, _ := list[0].(map[string]any)
	want := map[string]any{"echo": map[string]any{"n": 1.0, "enable_safety_checker": true}}
	if diff := cmp.Diff(any(want), first["output"]); diff != "" || len(list) != 2 {
		t.Errorf("%d results, the first (-want +got):\n%s", len(list), diff)
	}
	r.want(t, 200, "POST", one+"/cancel", "")

	without := newRig(t)
	if a := without.ask(t, "POST", "/v2/e1/batch", "key_research", "[]"); a.Status != 404 {
		t.Errorf("without the setting: %d %s", a.Status, a.Body)
	}
}
