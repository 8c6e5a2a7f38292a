package v1

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
)

func TestFourOperations(t *testing.T) {
	g := newGate(
		t, DefaultConfig(),
		created("NVIDIA L4"),
		answer{op: "listPods", status: 200, body: map[string]any{"pods": []any{fixture("pod"), fixture("cpuPod")}}},
		answer{op: "getPod", id: "p1", status: 200, body: fixture("pod")},
		answer{op: "podAction", id: "p1", status: 200, body: merge(fixture("pod"), map[string]any{"status": "EXITED", "cost": 0})},
	)
	made := g.do(t, "POST /v1/pods", `{"imageName":"img:1","gpuTypeIds":["NVIDIA L4"],"templateId":""}`)
	if made.Status != 201 || made.text("desiredStatus") != "RUNNING" || translate.At(made.body, "portMappings") != nil {
		t.Errorf("create: %d %s", made.Status, made.Body)
	}
	if env := translate.Members(made.body, "env"); len(env) != 0 {
		t.Errorf("create shows the injected environment: %v", env)
	}
	listed := g.do(t, "GET /v1/pods?computeType=CPU", "")
	if pods, _ := listed.body.([]any); listed.Status != 200 || len(pods) != 1 || translate.Text(pods[0], "id") != "p2" {
		t.Errorf("list: %d %s", listed.Status, listed.Body)
	}
	got := g.do(t, "GET /v1/pods/p1", "")
	if got.Status != 200 || got.text("publicIp") != "213.173.1.2" || translate.Whole(got.body, "portMappings", "22") != 10341 {
		t.Errorf("get: %d %s", got.Status, got.Body)
	}
	stopped := g.do(t, "POST /v1/pods/p1/stop", "")
	if stopped.Status != 200 || stopped.text("desiredStatus") != "EXITED" {
		t.Errorf("stop: %d %s", stopped.Status, stopped.Body)
	}
	if diff := cmp.Diff([]any{map[string]any{"action": "stop"}}, g.bodies("podAction")); diff != "" {
		t.Errorf("action (-want +got):\n%s", diff)
	}
}

func TestMigrationHeaders(t *testing.T) {
	g := newGate(t, DefaultConfig(), answer{
		op: "getPod", status: 200, body: fixture("pod"),
		header: http.Header{"Ratelimit": {`"minute";r=1;t=2`}, "X-Request-Id": {"r1"}, "Set-Cookie": {"no"}},
	})
	g.defaults["listGpuTypes"] = fixture("gpus")
	g.do(t, "GET /v1/pods/p1", "") // fills the catalog cache
	g.script = append(g.script, answer{
		op: "getPod", status: 200, body: fixture("pod"),
		header: http.Header{"Ratelimit": {`"minute";r=1;t=2`}, "X-Request-Id": {"r1"}, "Set-Cookie": {"no"}},
	})
	got := g.do(t, "GET /v1/pods/p1", "")
	want := http.Header{
		"Deprecation":             {"@1794700800"},
		"Link":                    {`</v2/pods/p1>; rel="successor-version", </v1/docs>; rel="deprecation"; type="text/html"`},
		"X-Tollgate-V2-Operation": {"getPod"},
		"Ratelimit":               {`"minute";r=1;t=2`},
		"X-Request-Id":            {"r1"},
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"getPod"}, got.V2); diff != "" {
		t.Errorf("V2 (-want +got):\n%s", diff)
	}
}

func TestLinkIsEscaped(t *testing.T) {
	g := newGate(t, DefaultConfig())
	out := g.api.Serve(t.Context(), "getPod", &translate.Incoming{Params: map[string]string{"podId": "a\r\nX: y>"}}, nil)
	if link := out.Header.Get("Link"); strings.ContainsAny(link, "\r\n") || !strings.Contains(link, "</v2/pods/a%0D%0AX:%20y%3E>") {
		t.Errorf("Link = %q", link)
	}
}

func TestServeAlwaysAnswers(t *testing.T) {
	c := &clock{t: dayZero}
	api, err := New(DefaultConfig(), translate.Deps{Now: c.now, Sleep: c.sleep})
	if err != nil {
		t.Fatal(err)
	}
	if out := api.Serve(t.Context(), "nonsense", nil, nil); out == nil || out.Status != 404 {
		t.Errorf("unknown operation: %+v", out)
	}
	for _, op := range Operations() {
		out := api.Serve(t.Context(), op.ID, nil, nil)
		if out == nil || out.Status < 200 || out.Status > 599 {
			t.Errorf("%s without anything: %+v", op.ID, out)
		}
	}
}

// panicking is a Caller that breaks its contract.
type panicking struct{ translate.Caller }

func TestServeSurvivesAPanic(t *testing.T) {
	api, err := New(DefaultConfig(), translate.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	out := api.Serve(t.Context(), "getPod", &translate.Incoming{}, panicking{})
	if out.Status != 500 || !strings.Contains(string(out.Body), textBroken) || strings.Contains(string(out.Body), "nil pointer") {
		t.Errorf("answer %d %s", out.Status, out.Body)
	}
}

func TestRefuse(t *testing.T) {
	api, err := New(DefaultConfig(), translate.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		in     *translate.Response
		status int
		want   string
	}{
		"401": {&translate.Response{Status: 401, Body: map[string]any{"detail": "no key"}}, 401, `{"detail":"no key","error":"Unauthorized","message":"Unauthorized","status":401}`},
		"403 keeps the policy's words": {
			&translate.Response{Status: 403, Body: map[string]any{"detail": "gpu-allow-list: NVIDIA H100 is not allowed"}},
			403, `{"detail":"gpu-allow-list: NVIDIA H100 is not allowed","error":"Forbidden: gpu-allow-list: NVIDIA H100 is not allowed","message":"Forbidden: gpu-allow-list: NVIDIA H100 is not allowed","status":403}`,
		},
		"404":         {&translate.Response{Status: 404, Body: map[string]any{"detail": "no such route"}}, 404, `{"error":"no such route","message":"no such route","status":404}`},
		"405 titled":  {&translate.Response{Status: 405, Body: map[string]any{"title": "Method Not Allowed"}}, 405, `{"error":"Method Not Allowed","message":"Method Not Allowed","status":405}`},
		"413":         {&translate.Response{Status: 413, Body: map[string]any{"detail": "too big"}}, 413, `{"error":"too big","message":"too big","status":413}`},
		"422 located": {&translate.Response{Status: 422, Body: map[string]any{"detail": "d", "errors": []any{"$.gpu.id: x", "$: y"}}}, 400, `{"detail":"d","error":"Invalid request body","message":"Invalid request body","problems":["gpuTypeIds: x","$: y"],"status":400}`},
		"429":         {&translate.Response{Status: 429, Body: map[string]any{"detail": "slow"}}, 429, `{"error":"slow","message":"slow","status":429}`},
		"503 of the gateway": {
			&translate.Response{Status: 503, Kind: "ledger_unavailable", Body: map[string]any{"detail": "no ledger"}}, 503,
			`{"detail":"no ledger","error":"no ledger. Please try again later.","message":"no ledger. Please try again later.","status":503}`,
		},
		"a fault of the gateway": {
			&translate.Response{Status: 500, Kind: "internal", Body: map[string]any{"detail": "Internal Server Error"}}, 500,
			`{"detail":"Internal Server Error","error":"` + textBroken + `","message":"` + textBroken + `","status":500}`,
		},
		"503": {&translate.Response{Status: 503, Body: map[string]any{"detail": "no store"}}, 503, `{"detail":"no store","error":"` + textBroken + `","message":"` + textBroken + `","status":503}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := api.Refuse(tt.in)
			if out.Status != tt.status || out.ContentType != "application/json" {
				t.Errorf("status %d %q, want %d application/json", out.Status, out.ContentType, tt.status)
			}
			if diff := cmp.Diff(tt.want, string(out.Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if out.Header.Get("Deprecation") == "" {
				t.Errorf("headers %v lack the migration signals", out.Header)
			}
		})
	}
}
