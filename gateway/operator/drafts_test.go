package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/operator"
	"github.com/tollgate-dev/tollgate/policies/decisionlog"
	"github.com/tollgate-dev/tollgate/policies/logfile"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
	"github.com/tollgate-dev/tollgate/policies/replay"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a gateway that logs its decisions, unless log is empty, and makes a call of one GPU and a refused one of three.
func start(t *testing.T, log string) *gateway.Gateway {
	t.Helper()
	p := platform.RunT(t)
	section := policyconfig.DefaultDecisionLog()
	if log != "" {
		section.File = &logfile.File{Path: log}
		log = "decisions: {file: {path: " + log + "}}\n"
	} else {
		section.Stdout = true
	}
	written, err := decisionlog.New(section, decisionlog.Deps{Stdout: io.Discard, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	g := world.Gateway(t, world.Configuration(t, `
platform: {base_url: "`+p.URL+`"}
redis: {embedded: true}
admin: {admins: [{name: root, sha256: SHA256(token_root), roles: [admin]}, {name: olga, sha256: SHA256(token_olga), roles: [operator]}, {name: bond, sha256: SHA256(token_bond), roles: [admin], org: globex}]}
`+log+`orgs:
  - id: acme
    credential: {env: KEY}
    policies: [{policy: gpu_count, params: {max_per_pod: 2}}]
    keys: [{id: ann, sha256: SHA256(key_of_ann)}]
  - id: globex
    credential: {env: OTHER}
`, map[string]string{"KEY": platform.DefaultKey, "OTHER": "platform-key-of-globex"}), gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr()), Decisions: written})
	for _, gpus := range []string{"1", "3"} {
		r := httptest.NewRequest(http.MethodPost, "/v2/pods", strings.NewReader(`{"name":"x","image":"i:1","env":{"TOKEN":"s3cr3t-value"},"gpu":{"id":"NVIDIA L4","count":`+gpus+`}}`))
		r.Header.Set("Authorization", "Bearer key_of_ann")
		r.Header.Set("Content-Type", "application/json")
		g.Handler().ServeHTTP(httptest.NewRecorder(), r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := written.Run(ctx); !errors.Is(err, context.Canceled) { // it writes what waits, and ends
		t.Fatal(err)
	}
	return g
}

// ask asks a row, and reads the answer if there is one.
func ask(t *testing.T, g *gateway.Gateway, who, path string, body, into any) (int, string) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(text)))
	r.Header.Set("Authorization", "Bearer token_"+who)
	w := httptest.NewRecorder()
	g.AdminHandler().ServeHTTP(w, r)
	if w.Code == http.StatusOK && into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
	}
	return w.Code, w.Body.String()
}

const lessGPUs = "policies: [{policy: gpu_count, params: {max_per_pod: 1}}]"

// The calls of a week are decided again by other parameters, and by a file of Rego. The policies in force stay.
func TestReplay(t *testing.T) {
	t.Parallel()
	g := start(t, filepath.Join(t.TempDir(), "decisions.log"))
	var report replay.Report
	status, text := ask(t, g, "root", "/admin/policies/replay?org=acme", operator.Draft{Rego: "package policies.none\n\ndeny contains \"no pods\" if input.request.operation == \"createPod\"\n"}, &report)
	if status != http.StatusOK || report.Read != 2 || report.Groups[0].Kind != replay.NewlyDenied || report.Groups[0].Calls != 1 || report.Groups[0].Policies["none"] != 1 {
		t.Errorf("a policy that refuses all pods: %d %s", status, text)
	}
	report = replay.Report{}
	status, text = ask(t, g, "root", "/admin/policies/replay?org=acme&since=24h", operator.Draft{Policies: "policies: [{policy: gpu_count, params: {max_per_pod: 4}}]"}, &report)
	if status != http.StatusOK || report.Groups[1].Kind != replay.NewlyAllowed || report.Groups[1].Calls != 1 {
		t.Errorf("a policy that allows more: %d %s", status, text)
	}
}

// decision returns the id of the newest refused decision.
func decision(t *testing.T, g *gateway.Gateway) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/admin/decisions?"+url.Values{"org": {"acme"}, "refused": {"true"}}.Encode(), http.NoBody)
	r.Header.Set("Authorization", "Bearer token_root")
	w := httptest.NewRecorder()
	g.AdminHandler().ServeHTTP(w, r)
	var list struct{ Decisions []struct{ DecisionID string } }
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Decisions) == 0 {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return list.Decisions[0].DecisionID
}

// A draft is tried on a recorded decision, whose masked values are not guessed.
func TestTry(t *testing.T) {
	t.Parallel()
	g := start(t, filepath.Join(t.TempDir(), "decisions.log"))
	id := decision(t, g)
	var tried operator.TrialResult
	status, text := ask(t, g, "root", "/admin/policies/try?org=acme", operator.Trial{Decision: id, Draft: operator.Draft{Rego: "package policies.mine\n\ndeny contains \"many\" if {\n\tprint(input.resource.after.gpu.count)\n\tinput.resource.after.gpu.count > 2\n}\n"}}, &tried)
	if status != http.StatusOK || len(tried.Results) != 1 || tried.Results[0] != (operator.PolicyResult{Policy: "mine", Verdict: "denies", Message: "many"}) || len(tried.Output) != 1 || tried.Output[0] != "draft.rego:4: 3" {
		t.Errorf("a recorded call: %d %s", status, text)
	}
	if len(tried.Masked) == 0 || strings.Contains(text, "s3cr3t-value") {
		t.Errorf("the environment is not masked: %s", text)
	}
	var again operator.TrialResult
	status, text = ask(t, g, "root", "/admin/policies/try?org=acme", operator.Trial{Input: tried.Input, Masked: tried.Masked, Draft: operator.Draft{Rego: "package policies.mine\n\ndeny contains \"x\" if input.resource.after.env.TOKEN == \"y\"\n"}}, &again)
	if status != http.StatusOK || len(again.Undetermined) != 1 || len(again.Results) != 0 {
		t.Errorf("a look at what is masked: %d %s", status, text)
	}
	again = operator.TrialResult{}
	status, text = ask(t, g, "root", "/admin/policies/try?org=acme", operator.Trial{Decision: id, Draft: operator.Draft{Policies: lessGPUs}}, &again)
	if status != http.StatusOK || len(again.Results) != 1 || !strings.Contains(again.Results[0].Message, "exceed the limit of 1") {
		t.Errorf("other parameters: %d %s", status, text)
	}
}

// Faults of a draft are told, and nobody but an admin of the organisation tries one.
func TestDraftsThatAreRefused(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	const try, again = "/admin/policies/try?org=acme", "/admin/policies/replay?org=acme"
	rego := operator.Draft{Rego: "package policies.mine\n\ndeny contains \"x\" if true\n"}
	for _, c := range []struct {
		who, path string
		body      any
		status    int
		says      string
	}{
		{"olga", try, rego, http.StatusForbidden, "role admin"},
		{"bond", again, rego, http.StatusForbidden, "bound to organisation globex"},
		{"root", again, rego, http.StatusConflict, "decisions.file is not set"},
		{"root", again, operator.Draft{}, http.StatusBadRequest, "rego, policies, or both are required"},
		{"root", again, map[string]string{"regos": ""}, http.StatusBadRequest, "regos"},
		{"root", again, operator.Draft{Rego: "package policies.mine\n\ndeny contains \"x\" if http.send({})\n"}, http.StatusBadRequest, "draft.rego:3"},
		{"root", again, operator.Draft{Rego: "package helpers\n\nx := 1\n"}, http.StatusBadRequest, "policy"},
		{"root", again, operator.Draft{Rego: strings.Repeat("#", 65<<10)}, http.StatusBadRequest, "exceeds 65536 bytes"},
		{"root", again, operator.Draft{Policies: "policies: [{policy: gpu_cuont}]"}, http.StatusBadRequest, "gpu_count"},
		{"root", again, operator.Draft{Policies: "policy: gpu_count"}, http.StatusBadRequest, "policies"},
		{"root", try, rego, http.StatusBadRequest, "decision or input is required"},
		{"root", try, operator.Trial{Draft: rego, Decision: "x"}, http.StatusBadRequest, "invalid id"},
		{"root", try, operator.Trial{Draft: rego, Decision: decision(t, g)}, http.StatusConflict, "decisions.file is not set"},
		{"root", try, operator.Trial{Draft: rego, Input: map[string]any{"version": 2}}, http.StatusBadRequest, "version must be the number 1, got 2"},
		{"root", try, operator.Trial{Draft: rego, Input: map[string]any{"version": 1, "caller": map[string]any{"org": "globex"}, "request": map[string]any{"operation": "createPod"}}}, http.StatusBadRequest, "does not match the organisation"},
	} {
		if status, text := ask(t, g, c.who, c.path, c.body, nil); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %+v: %d %s, want %d with %q", c.path, c.body, status, text, c.status, c.says)
		}
	}
}
