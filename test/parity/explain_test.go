package parity

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

const changing = `
- policy: gpu_allow_list
  mode: shadow
  params: {gpus: ["NVIDIA L4"]}
- policy: images
  mode: warn
  params: {allow: [ghcr.io/acme]}
- policy: disk
  params: {max_gb: 100, default_gb: 20}
- policy: field_values
  params:
    defaults: {createPod: {/cloud: COMMUNITY}, createEndpoint: {/workers/idleTimeout: 5}}
    force: {createPod: {/env/TEAM: research}, updatePod: {/locked: true}}
`

// A value that policies change is sent, told, and judged like the caller's own.
func TestPoliciesChangeBodies(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		want := []string{"field_values: /cloud", "disk: /disk", "field_values: /env/TEAM"}
		for name, raw := range map[string]string{
			"v2":      request("POST", "/v2/pods", "key_platform", `{"name":"a","image":"ghcr.io/acme/i:1","gpu":{"id":"NVIDIA GeForce RTX 4090"},"env":{"A":"1"}}`),
			"v1":      request("POST", "/v1/pods", "key_platform", `{"name":"a","imageName":"ghcr.io/acme/i:1","gpuTypeIds":["NVIDIA GeForce RTX 4090"],"env":{"A":"1"},"cloudType":"COMMUNITY","containerDiskInGb":20}`),
			"graphql": request("POST", "/graphql", "key_platform", `{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"ghcr.io/acme/i:1\", gpuTypeId: \"NVIDIA GeForce RTX 4090\", cloudType: COMMUNITY, containerDiskInGb: 20, env: [{key: \"A\", value: \"1\"}]}) { id } }"}`),
		} {
			a := d.ask(t, raw)
			if a.Status > 201 {
				t.Fatalf("%s: %d %s", name, a.Status, a.Body)
			}
			body := d.lastBody(t, "createPod")
			got := map[string]any{"cloud": body["cloud"], "disk": body["disk"], "env": body["env"]}
			if diff := cmp.Diff(map[string]any{"cloud": "COMMUNITY", "disk": 20.0, "env": map[string]any{"A": "1", "TEAM": "research"}}, got); diff != "" {
				t.Errorf("%s: sent (-want +got):\n%s", name, diff)
			}
			told := a.Header.Values("X-Tollgate-Mutation")
			if name == "v2" {
				if diff := cmp.Diff(want, told); diff != "" {
					t.Errorf("%s: told (-want +got):\n%s", name, diff)
				}
			} else if !slices.Contains(told, "field_values: /env/TEAM") {
				t.Errorf("%s: told %q", name, told)
			}
		}
		plain := d.ask(t, request("GET", "/v2/pods", "key_platform", ""))
		if told := plain.Header.Values("X-Tollgate-Mutation"); len(told) != 0 {
			t.Errorf("a read is told of changes: %q", told)
		}
		if !strings.Contains(d.logs.String(), `"changed":["field_values: /cloud"`) {
			t.Errorf("the log tells of no change: %s", d.logs)
		}
	}, under(changing))
}

// A change that makes the body invalid refuses the call; it is never sent.
func TestAChangeThatCannotBe(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		a := d.ask(t, request("POST", "/v2/pods", "key_platform", pod4090))
		if a.Status != 503 || !strings.Contains(a.Body, "the body is invalid after the organisation's policies changed it") {
			t.Errorf("%d %s, want 503", a.Status, a.Body)
		}
		if n := len(d.platform.CallsTo("createPod")); n != 0 {
			t.Errorf("%d creates reached the platform", n)
		}
	}, under(`
- policy: field_values
  params:
    force: {createPod: {/disk: "much"}}
`))
}

// asOperator asks the admin listener and decodes its answer, unless into is nil.
func (d *door) asOperator(t *testing.T, method, target, body string, into any) int {
	t.Helper()
	w := httptest.NewRecorder()
	d.gateway.AdminHandler().ServeHTTP(w, httptest.NewRequest(method, "http://127.0.0.1:8081"+target, strings.NewReader(body)))
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
	}
	return w.Code
}

// page is the text of a page of the admin listener.
func (d *door) page(t *testing.T, target string) string {
	t.Helper()
	w := httptest.NewRecorder()
	d.gateway.AdminHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8081"+target, nil))
	return w.Body.String()
}

// Every answer carries an id under which the gateway shows its decision.
func TestDecisionsAreExplained(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		refused := d.ask(t, request("POST", "/v2/pods", "key_research", podH100))
		d.ask(t, request("GET", "/v2/pods", "key_globex", ""))
		legacy := d.ask(t, request("POST", "/v1/pods", "key_research", `{"name":"c","imageName":"img:1","gpuTypeIds":["NVIDIA H100 80GB HBM3","NVIDIA L4"]}`))
		if legacy.Status != 201 {
			t.Fatalf("v1: %d %s", legacy.Status, legacy.Body)
		}
		var x explain.Report
		if code := d.asOperator(t, "GET", "/admin/decisions/"+refused.Header.Get("X-Tollgate-Decision"), "", &x); code != 200 {
			t.Fatalf("explain: %d", code)
		}
		var stages []string
		for _, s := range append(x.Stages, x.Calls[0].Stages...) {
			stages = append(stages, s.Name+" "+s.Result)
		}
		want := []string{
			"limit size passed", "match route passed", "check headers passed", "authenticate passed", "record legacy use passed", "limit concurrency passed", "rate limit passed",
			"require route passed", "dry run passed", "answer locally passed", "decode body passed",
			"brownout passed", "translate passed", "rate limit passed", "strip caller keys passed", "read labels passed", "idempotency passed", "check ownership passed",
			"validate passed", "resolve state passed", "evaluate policies refused",
		}
		if diff := cmp.Diff(want, stages); diff != "" {
			t.Errorf("stages (-want +got):\n%s", diff)
		}
		if x.Verdict != explain.Refused || x.Status != 403 || x.Calls[0].USDPerHour == "" || len(x.ToPass) != 1 || !strings.HasPrefix(x.ToPass[0], "gpu_allow_list: ") {
			t.Errorf("explanation %+v", x)
		}
		var old explain.Report
		d.asOperator(t, "GET", "/admin/decisions/"+legacy.Header.Get("X-Tollgate-Decision"), "", &old)
		var calls []string
		for _, c := range old.Calls {
			if c.Method != http.MethodGet {
				calls = append(calls, fmt.Sprintf("%s %s %d", c.Operation, c.Verdict, c.Status))
			}
		}
		if diff := cmp.Diff([]string{"createPod refused 403", "createPod allowed 201"}, calls); diff != "" {
			t.Errorf("calls of the v1 request (-want +got):\n%s", diff)
		}
		var list struct{ Decisions []explain.Summary }
		d.asOperator(t, "GET", "/admin/decisions?org=acme", "", &list)
		if len(list.Decisions) != 2 || slices.ContainsFunc(list.Decisions, func(s explain.Summary) bool { return s.Org != "acme" }) {
			t.Errorf("acme's decisions: %+v", list.Decisions)
		}
		if code := d.asOperator(t, "GET", "/admin/decisions/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", &struct{}{}); code != 404 {
			t.Errorf("an unknown decision: %d", code)
		}
	})
}

// explain asks what would become of a request.
func (d *door) explain(t *testing.T, q *operator.ExplainBody) *explain.Report {
	t.Helper()
	x, err := d.gateway.Questions().Explain(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The explanation matches the call: each case is explained first and done then.
func TestExplanationsComeTrue(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, method, target, key, body string
		status                          int // 0: it passes
		v2                              []string
	}{
		{"a pod", "POST", "/v2/pods", "key_research", pod4090, 0, []string{"createPod"}},
		{"a GPU not allowed", "POST", "/v2/pods", "key_research", podH100, 403, []string{"createPod"}},
		{"too dear", "POST", "/v2/pods", "key_platform", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA B200","count":8}}`, 403, []string{"createPod"}},
		{"not valid", "POST", "/v2/pods", "key_research", `{"name":1}`, 422, []string{"createPod"}},
		{"not JSON", "POST", "/v2/pods", "key_research", `{`, 400, nil},
		{"no route", "GET", "/v2/nope", "key_research", "", 404, nil},
		{"no method", "PUT", "/v2/pods", "key_research", "", 405, nil},
		{"a list", "GET", "/v2/pods", "key_research", "", 0, []string{"listPods"}},
		{"no such pod to change", "PATCH", "/v2/pods/nope1234", "key_research", `{"name":"b"}`, 404, []string{"updatePod"}},
		{"the description", "GET", "/v2/openapi.json", "key_research", "", 0, nil},
		{"v1, one candidate", "POST", "/v1/pods", "key_research", `{"name":"c","imageName":"i:1","gpuTypeIds":["NVIDIA L4"]}`, 0, []string{"createPod"}},
		{"v1, the second candidate", "POST", "/v1/pods", "key_research", `{"name":"c","imageName":"i:1","gpuTypeIds":["NVIDIA H100 80GB HBM3","NVIDIA L4"]}`, 0, []string{"createPod", "createPod"}},
		{"v1, none allowed", "POST", "/v1/pods", "key_research", `{"name":"c","imageName":"i:1","gpuTypeIds":["NVIDIA H100 80GB HBM3"]}`, 403, []string{"createPod"}},
		{"no such pod to delete", "DELETE", "/v2/pods/nope1234", "key_research", "", 404, []string{"deletePod"}},
		{"no such pod to stop", "POST", "/v2/pods/nope1234/action", "key_research", `{"action":"stop"}`, 404, []string{"podAction"}},
		{"v1, a pod nobody has", "POST", "/v1/pods/nope1234/stop", "key_research", "", 404, nil},
	}
	eachDoor(t, func(t *testing.T, d *door) {
		for _, tc := range cases {
			before := len(d.platform.Calls())
			limit := d.left(t, tc.key)
			x := d.explain(t, &operator.ExplainBody{Method: tc.method, Path: tc.target, Key: tc.key, Body: tc.body})
			for _, c := range d.platform.Calls()[before:] {
				if c.Method != http.MethodGet {
					t.Errorf("%s: explaining made a %s %s", tc.name, c.Method, c.Path)
				}
			}
			if now := d.left(t, tc.key); now != limit {
				t.Errorf("%s: explaining was counted: %d left, then %d", tc.name, limit, now)
			}
			var v2 []string
			for _, c := range x.Calls {
				if c.Method != http.MethodGet || c.Operation == "listPods" {
					v2 = append(v2, c.Operation)
				}
			}
			if tc.v2 != nil && !slices.Equal(v2, tc.v2) {
				t.Errorf("%s: calls %v, want %v", tc.name, v2, tc.v2)
			}
			if got, want := x.Verdict == explain.Allowed, tc.status == 0; got != want || tc.status != x.Status {
				t.Errorf("%s: explained as %s %d %s, want %d", tc.name, x.Verdict, x.Status, x.Detail, tc.status)
			}
			a := d.ask(t, request(tc.method, tc.target, tc.key, tc.body))
			if tc.status == 0 && a.Status >= 400 || tc.status != 0 && a.Status != tc.status {
				t.Errorf("%s: in fact %d %s, explained as %s %d", tc.name, a.Status, a.Body, x.Verdict, x.Status)
			}
		}
	})
}

// A policy that changes bodies does not hide that another one denies.
func TestAnExplanationOfAChangedBodyComesTrue(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		for count, status := range map[int]int{2: 0, 8: http.StatusForbidden} {
			pod := fmt.Sprintf(`{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4","count":%d}}`, count)
			x := d.explain(t, &operator.ExplainBody{Method: "POST", Path: "/v2/pods", Key: "key_platform", Body: pod})
			if (x.Verdict == explain.Allowed) != (status == 0) || x.Status != status {
				t.Errorf("%d GPUs: explained as %s %d %s, want %d", count, x.Verdict, x.Status, x.Detail, status)
			}
			a := d.ask(t, request("POST", "/v2/pods", "key_platform", pod))
			if status == 0 && a.Status != http.StatusCreated || status != 0 && a.Status != status {
				t.Errorf("%d GPUs: in fact %d %s, want %d", count, a.Status, a.Body, status)
			}
		}
	}, under(`
- {policy: gpu_count, params: {max_per_pod: 2}}
- {policy: disk, params: {max_gb: 1000, default_gb: 20}}
`))
}

// Why policies gave no verdict is told to operators, and not to callers.
func TestWhyThereIsNoVerdictIsExplained(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		const why = "$.disk: must be an integer"
		x := d.explain(t, &operator.ExplainBody{Method: "POST", Path: "/v2/pods", Key: "key_platform", Body: pod4090})
		a := d.ask(t, request("POST", "/v2/pods", "key_platform", pod4090))
		var recorded explain.Report
		d.asOperator(t, "GET", "/admin/decisions/"+a.Header.Get("X-Tollgate-Decision"), "", &recorded)
		for kind, x := range map[string]*explain.Report{"dry": x, "recorded": &recorded} {
			last := x.Calls[0].Stages[len(x.Calls[0].Stages)-1]
			if x.Status != 503 || last.Name != "evaluate policies" || !strings.Contains(strings.Join(last.Notes, "\n"), "because: ") || !strings.Contains(strings.Join(last.Notes, "\n"), why) {
				t.Errorf("%s: %d, %s: %q, want 503 by evaluate policies because of %s", kind, x.Status, last.Name, last.Notes, why)
			}
		}
		if strings.Contains(a.Body, "because") {
			t.Errorf("the caller is told: %s", a.Body)
		}
	}, under(`
- policy: field_values
  params: {force: {createPod: {/disk: large}}}
`))
}

// left is the number of calls that a key has left this minute.
func (d *door) left(t *testing.T, key string) int64 {
	t.Helper()
	var list struct {
		Windows []struct {
			Scope, Window string
			Remaining     int64
		}
	}
	d.asOperator(t, "GET", "/admin/limits?org=acme", "", &list)
	for _, w := range list.Windows {
		if w.Scope == "key:"+key && w.Window == "minute" {
			return w.Remaining
		}
	}
	return -1
}

// TestNoVerdictIsNoYes: a call whose policy fails is refused, in every dialect, and the platform
// hears nothing of it.
func TestNoVerdictIsNoYes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "conflict.rego", `package policies.conflict

size := 1 if input.request.verb == "create"

size := 2 if input.resource.kind == "pod"

deny contains "x" if size == 1
`)
	eachDoor(t, func(t *testing.T, d *door) {
		for name, raw := range map[string]string{
			"v2":      request("POST", "/v2/pods", "key_platform", pod4090),
			"v1":      request("POST", "/v1/pods", "key_platform", `{"name":"a","imageName":"i:1","gpuTypeIds":["NVIDIA GeForce RTX 4090"]}`),
			"graphql": request("POST", "/graphql", "key_platform", `{"query":"mutation { podFindAndDeployOnDemand(input: {name: \"a\", imageName: \"i:1\", gpuTypeId: \"NVIDIA GeForce RTX 4090\"}) { id } }"}`),
		} {
			a := d.ask(t, raw)
			if refused := a.Status == 503 || name == "graphql" && strings.Contains(a.Body, `"status":503`); !refused {
				t.Errorf("%s: %d %s, want 503", name, a.Status, a.Body)
			}
		}
		if calls := d.platform.CallsTo("createPod"); len(calls) != 0 {
			t.Errorf("the platform was asked to create %d pods", len(calls))
		}
	}, ownRego(dir))
}
