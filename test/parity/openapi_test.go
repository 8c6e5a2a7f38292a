package parity

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// The answers of a live gateway's admin listener fit the document that it serves: every
// operation that answers with JSON, and refusals. Parameters are those that the document has.
func TestAdminAnswersFitTheirDocument(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", under(approvableCeiling), budgeted("{per_hour: 3}"), watching("{for: 10m, action: notify}"), audited(filepath.Join(t.TempDir(), "audit.log")), func(d *door) {
		d.text += "issuers: [{id: corp, url: \"https://id.example.com\", audiences: [x], orgs: [acme], role: viewer}]\n" // is not asked
	})
	open := func(method, target, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
		r.Host = "127.0.0.1"
		d.gateway.AdminHandler().ServeHTTP(w, r)
		return w
	}
	text := open("GET", "/admin/openapi.json", "").Body.String()
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In string
				Required bool
			}
			Responses map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	cheap := d.ask(t, request("POST", "/v2/pods", "key_research", `{"name":"cheap","image":"img:1","cpu":{"id":"cpu3c","vcpuCount":2}}`))
	if cheap.Status != 201 {
		t.Fatalf("create: %d %s", cheap.Status, cheap.Body)
	}
	id, _ := field(t, cheap.Body, "id").(string)
	d.used(t, 0, 1, id)
	d.watch(t, 12)
	stray(t, d, "stray")
	d.advance(time.Hour)
	refused := d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
	decision, _ := field(t, refused.Body, "decision").(string)
	first := refusedWith(t, refused, 403)
	second := refusedWith(t, d.ask(t, request("POST", "/v2/pods", "key_platform", podL4)), 403)
	d.ask(t, request("GET", "/v1/pods", "key_research", ""))
	// These operations need gateways that run, or a log of decisions in a file: the test asks for
	// their refusal.
	fitted := map[string]bool{"GET /admin/envoy/snapshot": true, "POST /admin/policies/replay": true}
	type asked struct {
		method, path, query, body string
		status                    int
	}
	cases := []asked{
		{"GET", "/livez", "", "", 200},
		{"GET", "/readyz", "", "", 503}, // nothing listens in this test
		{"GET", "/admin/openapi.json", "", "", 200},
		{"GET", "/admin/status", "", "", 200},
		{"GET", "/admin/limits", "org=acme", "", 200},
		{"GET", "/admin/limits", "org=none", "", 404},
		{"POST", "/admin/limits/reset", "org=acme&scope=nonsense", "", 400},
		{"POST", "/admin/limits/reset", "org=acme&scope=team:unknown", "", 400},
		{"POST", "/admin/limits/reset", "org=acme&scope=org:globex", "", 400},
		{"GET", "/admin/spend", "org=acme", "", 200},
		{"GET", "/admin/spend", "org=wrong", "", 400},
		{"GET", "/admin/spend", "org=acme&team=none", "", 404},
		{"GET", "/admin/spend", "org=acme&team=research&kind=pod&label=project=", "", 200},
		{"POST", "/admin/spend/holds/release", "org=acme&id=none&reason=x", "", 400},
		{"POST", "/admin/spend/holds/release", "org=acme&id=stray&reason=x", "", 200},
		{"POST", "/admin/spend/reconcile", "org=acme", "", 200},
		{"POST", "/admin/spend/adopt", "org=acme&team=research&id=" + id, "", 200},
		{"POST", "/admin/spend/adopt-team", "org=acme&from_team=gone&to_team=research", "", 200},
		{"POST", "/admin/spend/adopt-team", "org=acme&from_team=gone&to_team=none", "", 404},
		{"POST", "/admin/spend/adjust", "org=acme&kind=correction&amount=1&team=research&reason=x", "", 200},
		{"POST", "/admin/spend/adjust", "org=acme&kind=credit&amount=1&reason=x", "", 200},
		{"POST", "/admin/spend/adjust", "org=acme&kind=credit&amount=999&reason=x", "", 400},
		{"GET", "/admin/spend/history", "org=acme&by=team&by=resource&bucket=hour", "", 200},
		{"GET", "/admin/spend/history", "org=acme&bucket=week", "", 400},
		{"GET", "/admin/spend/forecast", "org=acme", "", 200},
		{"GET", "/admin/spend/compare", "org=acme&by=team,gpu&sort=difference", "", 200},
		{"GET", "/admin/spend/compare", "org=acme&by=nothing", "", 400},
		{"GET", "/admin/spend/budgets", "org=acme&team=research&sort=scope&at_risk=true", "", 200},
		{"GET", "/admin/spend/fits", "org=acme&team=research", "", 200},
		{"GET", "/admin/decisions/outcomes", "org=acme&bucket=hour&by=team", "", 200},
		{"GET", "/admin/decisions", "org=acme&outcome=denied&resource=pod1", "", 200},
		{"GET", "/admin/policies", "org=acme&all=true", "", 200},
		{"GET", "/admin/policies", "org=acme&policy=gpu_count", "", 200},
		{"GET", "/admin/decisions/outcomes", "org=acme&bucket=5m&by=team", "", 400},
		{"GET", "/admin/search", "org=acme&q=" + id, "", 200},
		{"GET", "/admin/spend/idle", "org=acme", "", 200},
		{"POST", "/admin/spend/snooze", "org=acme&for=1h&id=" + id, "", 200},
		{"GET", "/admin/approvals", "org=acme", "", 200},
		{"POST", "/admin/approvals/grant", "org=acme&by=ada&reason=r&id=" + first, "", 200},
		{"POST", "/admin/approvals/deny", "org=acme&by=ada&id=" + second, "", 200},
		{"POST", "/admin/approvals/deny", "org=acme&by=ada&id=ap-none", "", 400},
		{"POST", "/admin/keys/create", "org=acme&spec=" + url.QueryEscape(`{"id":"made","team":"research"}`), "", 201},
		{"POST", "/admin/keys/create", "org=acme&spec=none", "", 422},
		{"POST", "/admin/keys/rotate", "org=acme&overlap=1h&id=made", "", 200},
		{"GET", "/admin/keys", "org=acme", "", 200},
		{"POST", "/admin/tokens/revoke", "issuer=corp&subject=ann", "", 200},
		{"POST", "/admin/tokens/revoke", "issuer=corp", "", 400},
		{"POST", "/admin/tokens/revoke", "issuer=none&id=x", "", 404},
		{"GET", "/admin/tokens/revoked", "", "", 200},
		{"GET", "/admin/legacy", "org=acme", "", 200},
		{"GET", "/admin/envoy", "", "", 200},
		{"GET", "/admin/envoy/snapshot", "group=none", "", 400},
		{"GET", "/admin/decisions", "org=acme&limit=10", "", 200},
		{"GET", "/admin/decisions/{id}", "", "", 200},
		{"POST", "/admin/explain", "", `{"method":"POST","path":"/v2/pods","key":"key_research","body":"{\"name\":\"a\",\"image\":\"img:1\",\"gpu\":{\"id\":\"NVIDIA L4\"}}"}`, 200},
		{"POST", "/admin/explain", "", `{"method":"POST","unknown":1}`, 400},
		{"GET", "/admin/audit", "org=acme", "", 200},
		{"POST", "/admin/policies/try", "org=acme", `{"rego":"package policies.x\n\ndeny contains \"no\" if true\n","input":{"version":1,"time":{"ns":1795255200000000000,"rfc3339":"2026-11-21T10:00:00Z"},"caller":{"org":"acme"},"request":{"operation":"createPod"},"resource":{"after":{"name":"a"}}}}`, 200},
		{"POST", "/admin/policies/try", "org=acme", `{}`, 400},
		{"POST", "/admin/policies/replay", "org=acme", `{"rego":"package policies.x\n\ndeny contains \"no\" if true\n"}`, 409}, // without a log in a file
	}
	for path, methods := range doc.Paths { // what needs an organisation at most is asked for one
		query, alone := "", !slices.ContainsFunc(cases, func(c asked) bool { return c.path == path })
		for _, p := range methods["get"].Parameters {
			if p.Name == "org" {
				query = "org=acme"
			}
			alone = alone && (p.Name == "org" || !p.Required)
		}
		if alone && methods["get"].Responses["200"].Content["application/json"] != nil {
			cases = append(cases, asked{"GET", path, query, "", 200})
		}
	}
	for _, tt := range cases {
		at := tt.method + " " + tt.path
		op, described := doc.Paths[tt.path][strings.ToLower(tt.method)]
		given, err := url.ParseQuery(tt.query)
		if err != nil || !described {
			t.Fatalf("%s: described %t (%v)", at, described, err)
		}
		for _, p := range op.Parameters {
			given.Del(p.Name)
		}
		if len(given) > 0 {
			t.Errorf("%s: %v is not described", at, given)
		}
		w := open(tt.method, strings.Replace(tt.path, "{id}", decision, 1)+"?"+tt.query, tt.body)
		if w.Code != tt.status {
			t.Errorf("%s %s: %d %s, want %d", at, tt.query, w.Code, w.Body, tt.status)
			continue
		}
		pointer := "openapi.json#/paths/" + strings.ReplaceAll(url.PathEscape(strings.ReplaceAll(tt.path, "/", "~1")), "%2F", "/") + "/" + strings.ToLower(tt.method) + "/responses/" + strconv.Itoa(w.Code) + "/content/" + strings.ReplaceAll(w.Header().Get("Content-Type"), "/", "~1") + "/schema"
		schema, err := c.Compile(pointer)
		if err != nil {
			t.Errorf("%s %d: %v", at, w.Code, err)
			continue
		}
		var answer any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		if err := schema.Validate(answer); err != nil {
			t.Errorf("%s: %s does not fit: %#v", at, w.Body, err)
		}
		if w.Code < http.StatusMultipleChoices || tt.path == "/readyz" {
			fitted[at] = true
		}
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			at := strings.ToUpper(method) + " " + path
			for _, status := range []string{"200", "201"} {
				if op.Responses[status].Content["application/json"] != nil && !fitted[at] {
					t.Errorf("%s was not asked", at)
				}
			}
		}
	}
}
