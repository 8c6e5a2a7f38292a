package v1

import (
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/legacy"
)

// The tests here follow programs over several requests.

func TestPodListFilters(t *testing.T) {
	const note = `{"templateId":"t1","gpuTypeId":"NVIDIA GeForce RTX 4090","gpuCount":1}`
	tests := map[string]string{ // query to the ids left
		"":                                   "p1 p2 p3",
		"computeType=GPU":                    "p1 p3",
		"computeType=CPU":                    "p2",
		"cpuFlavorId=cpu5c&cpuFlavorId=x":    "p2",
		"dataCenterId=EU-RO-1,US-TX-3":       "p1 p2",
		"desiredStatus=RUNNING":              "p1 p2",
		"desiredStatus=EXITED":               "p3",
		"desiredStatus=TERMINATED":           "",
		"endpointId=e1":                      "",
		"gpuTypeId=NVIDIA+L4":                "p3",
		"id=p2":                              "p2",
		"imageName=img:1":                    "p1 p2",
		"imageName=img":                      "",
		"name=my+pod":                        "p1",
		"name=My+pod":                        "",
		"networkVolumeId=v1":                 "p3",
		"templateId=t1":                      "p1",
		"templateId=t1&computeType=CPU":      "",
		"name=&unknown=1":                    "p1 p2 p3",
		"gpuTypeId=NVIDIA+L4&gpuTypeId=cpu1": "p3",
	}
	for query, want := range tests {
		t.Run(query, func(t *testing.T) {
			pods := fixture("podList").(map[string]any)
			pods["pods"] = append(pods["pods"].([]any), merge(fixture("pod"), map[string]any{"id": "p9", "status": "TERMINATED"}))
			g := newGate(t, DefaultConfig(), answer{op: "listPods", status: 200, body: pods})
			g.remember(t, translate.KindPod, "p1", note)
			got := g.do(t, "GET /v1/pods?"+query, "")
			if left := strings.Join(legacy.IDs(got.body.([]any)), " "); left != want {
				t.Errorf("left %q, want %q", left, want)
			}
		})
	}
	for _, query := range []string{"computeType=TPU", "desiredStatus=running", "includeWorkers=yes"} {
		g := newGate(t, DefaultConfig())
		if got := g.do(t, "GET /v1/pods?"+query, ""); got.Status != 400 || len(g.calls) > 0 {
			t.Errorf("%s: status %d after %d calls, want 400 after none", query, got.Status, len(g.calls))
		}
	}
}

func TestEndpointReadsBackWhatWasSent(t *testing.T) {
	g := newGate(
		t, DefaultConfig(),
		answer{op: "createEndpoint", status: 201, body: merge(fixture("endpoint"), mustJSON(
			`{"scaling":{"type":"REQUEST_COUNT","queueDelay":null,"requestCount":3},"workers":{"idleTimeout":null}}`))},
	)
	const body = `{"templateId":"t2","name":"ep","gpuTypeIds":["NVIDIA GeForce RTX 4090","NVIDIA RTX A5000"],
		"scalerType":"REQUEST_COUNT","scalerValue":3,"idleTimeout":77}`
	made := g.do(t, "POST /v1/endpoints", body)
	sent := g.bodies("createEndpoint")[0]
	if translate.At(sent, "workers", "idleTimeout") != nil {
		t.Errorf("an idle timeout was sent with REQUEST_COUNT: %v", sent)
	}
	g.script = []answer{{op: "getEndpoint", status: 200, body: merge(fixture("endpoint"), mustJSON(
		`{"scaling":{"type":"REQUEST_COUNT","queueDelay":null,"requestCount":3},"workers":{"idleTimeout":null}}`))}}
	read := g.do(t, "GET /v1/endpoints/e1", "")
	for name, got := range map[string]result{"create": made, "read": read} {
		want := mustJSON(`{"templateId":"t2","gpuTypeIds":["NVIDIA GeForce RTX 4090","NVIDIA RTX A5000"],"idleTimeout":77,"scalerType":"REQUEST_COUNT","scalerValue":3}`)
		have := map[string]any{}
		for member := range want.(map[string]any) {
			have[member] = translate.At(got.body, member)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-sent +read):\n%s", name, diff)
		}
	}
}

func TestScaleDownThenDelete(t *testing.T) {
	g := newGate(
		t, DefaultConfig(),
		answer{op: "getEndpoint", status: 200, body: merge(fixture("endpoint"), mustJSON(`{"workers":{"min":2,"max":3}}`))},
		answer{op: "updateEndpoint", status: 200, body: merge(fixture("endpoint"), mustJSON(`{"workers":{"min":0,"max":0}}`))},
		answer{op: "deleteEndpoint", status: 204},
	)
	if got := g.do(t, "PATCH /v1/endpoints/e1", `{"workersMax":0}`); got.Status != 200 || translate.Whole(got.body, "workersMin") != 0 {
		t.Errorf("PATCH: %d %s", got.Status, got.Body)
	}
	if got := g.do(t, "DELETE /v1/endpoints/e1", ""); got.Status != 204 {
		t.Errorf("DELETE: %d %s", got.Status, got.Body)
	}
	if diff := cmp.Diff([]any{mustJSON(`{"workers":{"min":0,"max":0}}`)}, g.bodies("updateEndpoint")); diff != "" {
		t.Errorf("PATCH bodies (-want +got):\n%s", diff)
	}
}

func TestBillingSumsMatchTheTotals(t *testing.T) {
	tests := map[string]struct{ target, op, fixture string }{
		"pods by type":      {"GET /v1/billing/pods", "listPodBilling", "podBilling"},
		"pods by id":        {"GET /v1/billing/pods?grouping=podId", "listPodBilling", "podBilling"},
		"pods by old word":  {"GET /v1/billing/pods?grouping=gpuId", "listPodBilling", "podBilling"},
		"endpoints":         {"GET /v1/billing/endpoints", "listServerlessBilling", "serverlessBilling"},
		"endpoints by type": {"GET /v1/billing/endpoints?grouping=gpuTypeId", "listServerlessBilling", "serverlessBilling"},
		"endpoints by pod":  {"GET /v1/billing/endpoints?grouping=podId", "listServerlessBilling", "serverlessBilling"},
		"volumes":           {"GET /v1/billing/networkvolumes", "listNetworkVolumeBilling", "volumeBilling"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, DefaultConfig(), answer{op: tt.op, status: 200, body: fixture(tt.fixture)})
			g.defaults["listPods"], g.defaults["listEndpoints"] = fixture("podList"), fixture("endpointList")
			got := g.do(t, tt.target, "")
			sum := new(big.Rat)
			for _, record := range got.body.([]any) {
				sum.Add(sum, decimal(translate.At(record, "amount")))
			}
			total := decimal(translate.At(fixture(tt.fixture), "metadata", "totals", "totalAmount"))
			if sum.FloatString(6) != total.FloatString(6) {
				t.Errorf("sum %s, want %s", sum.FloatString(6), total.FloatString(6))
			}
		})
	}
}

func TestRounderNeverLosesAMillionth(t *testing.T) {
	var r rounder
	sum := new(big.Rat)
	for range 1000 {
		sum.Add(sum, decimal(r.next(big.NewRat(1, 3000000))))
	}
	if want := "0.000333"; sum.FloatString(6) != want {
		t.Errorf("1000 thirds of a millionth add up to %s, want %s", sum.FloatString(6), want)
	}
}

func TestVolumeCallsEndIn9Seconds(t *testing.T) {
	var script []answer
	for range 8 {
		script = append(script, answer{op: "listNetworkVolumes", status: 429, header: http.Header{"Retry-After": {"10"}}})
	}
	g := newGate(t, DefaultConfig(), script...)
	got := g.do(t, "GET /v1/networkvolumes", "")
	if elapsed := g.clock.now().Sub(dayZero); got.Status != 429 || elapsed > 9*time.Second {
		t.Errorf("answer %d after %v, want 429 within 9s", got.Status, elapsed)
	}
	if got.Header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After = %q, want 10", got.Header.Get("Retry-After"))
	}
}

func TestInputChecks(t *testing.T) {
	tests := map[string]struct {
		target, body, want string
	}{
		"no body":             {"POST /v1/pods", "", "invalid request body"},
		"null":                {"POST /v1/pods", "null", "invalid request body"},
		"array":               {"POST /v1/pods", "[]", "invalid request body"},
		"unknown key":         {"POST /v1/pods", `{"imagename":"i"}`, "Extra input keys provided in request body"},
		"text for integer":    {"POST /v1/pods", `{"imageName":"i","gpuCount":"2"}`, "gpuCount: expected integer"},
		"fraction":            {"POST /v1/pods", `{"imageName":"i","gpuCount":1.5}`, "gpuCount: expected integer"},
		"huge exponent":       {"POST /v1/pods", `{"imageName":"i","gpuCount":1e999999999}`, "gpuCount: expected integer"},
		"below range":         {"POST /v1/pods", `{"imageName":"i","gpuCount":0}`, "gpuCount: must be at least 1"},
		"negative disk":       {"POST /v1/pods", `{"imageName":"i","containerDiskInGb":-1}`, "containerDiskInGb: must be at least 0"},
		"closed words":        {"POST /v1/pods", `{"imageName":"i","cloudType":"ALL"}`, "cloudType: must be one of SECURE, COMMUNITY"},
		"long name":           {"POST /v1/pods", `{"imageName":"i","name":"` + strings.Repeat("ä", 192) + `"}`, "name: must be at most 191 characters"},
		"nested env":          {"POST /v1/pods", `{"imageName":"i","env":{"a":{}}}`, `env: "a": expected string, number or boolean`},
		"list as env":         {"POST /v1/pods", `{"imageName":"i","env":["a"]}`, "env: expected object"},
		"list of numbers":     {"POST /v1/pods", `{"imageName":"i","gpuTypeIds":[1]}`, "gpuTypeIds: expected array of strings"},
		"text for a command":  {"POST /v1/pods", `{"imageName":"i","dockerStartCmd":"a,b"}`, "dockerStartCmd: expected array of strings"},
		"no image":            {"POST /v1/pods", `{}`, "imageName is required"},
		"two commands":        {"POST /v1/pods", `{"imageName":"i","dockerArgs":"x","dockerStartCmd":["y"]}`, "dockerArgs cannot be combined with dockerStartCmd or dockerEntrypoint"},
		"cuda nonsense":       {"POST /v1/pods", `{"imageName":"i","allowedCudaVersions":["twelve"]}`, `allowedCudaVersions: "twelve" is not a version like 12.4`},
		"cuda contradiction":  {"POST /v1/pods", `{"imageName":"i","allowedCudaVersions":["11.8"],"minCudaVersion":"12.0"}`, "allowedCudaVersions: no version is at least minCudaVersion 12.0"},
		"country nonsense":    {"POST /v1/pods", `{"imageName":"i","gpuTypeIds":["NVIDIA L4"],"countryCodes":["Romania"]}`, `countryCodes: "Romania" is not a country code of two capital letters`},
		"vcpu nonsense":       {"POST /v1/pods", `{"imageName":"i","computeType":"CPU","vcpuCount":9007199254740992}`, "vcpuCount: no machine has 9007199254740992 vCPUs"},
		"missing key":         {"POST /v1/networkvolumes", `{"name":"n","size":20}`, "missing required key: 'dataCenterId'"},
		"empty required text": {"POST /v1/containerregistryauth", `{"name":"n","username":"u","password":""}`, "missing required key: 'password'"},
		"min above max":       {"POST /v1/endpoints", `{"templateId":"t","name":"n","workersMin":4,"workersMax":3}`, "workersMin: must be at most workersMax (3)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, DefaultConfig())
			got := g.do(t, tt.target, tt.body)
			if got.Status != 400 || got.text("message") != tt.want {
				t.Errorf("answer %d %q, want 400 %q", got.Status, got.text("message"), tt.want)
			}
			for _, call := range g.calls {
				if !strings.HasPrefix(call.op, "list") {
					t.Errorf("%s was called", call.op)
				}
			}
		})
	}
}

// Keys that a client left out ask for nothing, whether v1 had them or not.
func TestUnsetKeys(t *testing.T) {
	plain := newGate(t, DefaultConfig(), created("NVIDIA L4"))
	plain.do(t, "POST /v1/pods", `{"imageName":"i","gpuTypeIds":["NVIDIA L4"]}`)
	g := newGate(t, DefaultConfig(), created("NVIDIA L4"))
	got := g.do(t, "POST /v1/pods", `{"imageName":"i","gpuTypeIds":["NVIDIA L4"],"savingsPlan":null,"volumes":[],"novel":{"a":[""],"b":null},"text":"",
		"name":[],"gpuCount":"","locked":{},"dockerStartCmd":"","env":"","networkVolumeId":null}`)
	if got.Status != 201 || len(got.Warnings) > 0 {
		t.Fatalf("answer %d %s with warnings %q, want 201 without", got.Status, got.Body, got.Warnings)
	}
	if diff := cmp.Diff(plain.calls[len(plain.calls)-1].body, g.calls[len(g.calls)-1].body); diff != "" {
		t.Errorf("the create (-without the keys +with them):\n%s", diff)
	}
}

func TestActionsIgnoreTheirBody(t *testing.T) {
	g := newGate(t, DefaultConfig(), answer{op: "podAction", status: 200, body: fixture("pod")})
	if got := g.do(t, "POST /v1/pods/p1/start", `["anything"]`); got.Status != 200 {
		t.Errorf("answer %d %s", got.Status, got.Body)
	}
}

func TestNothingOfTheStoreIsSharedBetweenAccounts(t *testing.T) {
	g := newGate(t, DefaultConfig(), answer{op: "getPod", status: 200, body: fixture("pod")})
	g.remember(t, translate.KindPod, "p1", `{"templateId":"secret-template"}`)
	in := &translate.Incoming{Params: map[string]string{"podId": "p1"}, Account: "globex"}
	out := g.api.Serve(t.Context(), "getPod", in, g.platform)
	if strings.Contains(string(out.Body), "secret-template") {
		t.Errorf("another account's note shows: %s", out.Body)
	}
}

func TestLossesAreBounded(t *testing.T) {
	var types []string
	for i := range 40 {
		types = append(types, `"unknown `+strings.Repeat("é", 150)+string(rune('a'+i%26))+string(rune('a'+i/26))+`"`)
	}
	g := newGate(t, DefaultConfig(), created("NVIDIA L4"))
	got := g.do(t, "POST /v1/pods", `{"imageName":"i","gpuTypeIds":["NVIDIA L4",`+strings.Join(types, ",")+`]}`)
	if got.Status != 201 || len(got.Warnings) != 10 || len(got.Header.Values("X-Legacy-Warning")) != 10 {
		t.Errorf("answer %d with %d warnings, want 201 with 10", got.Status, len(got.Warnings))
	}
	for _, line := range got.Warnings {
		if len(line) > 200 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("warning %q is not short printable ASCII", line)
		}
	}
}
