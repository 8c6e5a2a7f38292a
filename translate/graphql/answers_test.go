package graphql_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/graphql"
)

func TestRefuse(t *testing.T) {
	api := newRig(t).api
	tests := []struct {
		refusal       *translate.Response
		status        int
		message, code string
	}{
		{&translate.Response{Status: 401, Body: map[string]any{"detail": "missing bearer token"}}, 401, "Unauthorized: missing bearer token", "UNAUTHENTICATED"},
		{&translate.Response{Status: 402, Body: map[string]any{"detail": "budget spent", "decision": "d", "policies": []any{"budget"}}}, 200, "budget spent", "INSUFFICIENT_FUNDS"},
		{&translate.Response{Status: 403, Body: map[string]any{"detail": "not allowed"}}, 200, "Forbidden: not allowed", "FORBIDDEN"},
		{&translate.Response{Status: 403, Body: map[string]any{"title": "Forbidden"}}, 200, "Forbidden", "FORBIDDEN"},
		{&translate.Response{Status: 404, Body: map[string]any{"title": "Not Found"}}, 404, "Not Found", "NOT_FOUND"},
		{&translate.Response{Status: 405, Body: map[string]any{"title": "Method Not Allowed"}}, 405, "Method Not Allowed", "METHOD_NOT_ALLOWED"},
		{&translate.Response{Status: 413, Body: map[string]any{"title": "Content Too Large"}}, 413, "Content Too Large", "PAYLOAD_TOO_LARGE"},
		{&translate.Response{Status: 429, Body: map[string]any{"detail": "minute window"}}, 429, "too many requests", "RATE_LIMITED"},
		{&translate.Response{Status: 400, Body: map[string]any{"detail": "duplicate name", "errors": []any{"$.query"}}}, 400, "duplicate name", "BAD_USER_INPUT"},
		{&translate.Response{Status: 500, Body: map[string]any{"detail": "stack"}}, 500, "Something went wrong. Please try again later or contact support.", "INTERNAL_SERVER_ERROR"},
		{&translate.Response{Status: 503, Kind: "ledger_unavailable", Body: map[string]any{"detail": "no ledger"}}, 503, "no ledger. Please try again later.", "INTERNAL_SERVER_ERROR"},
		{&translate.Response{Status: 500, Kind: "internal", Body: map[string]any{"detail": "Internal Server Error"}}, 500, "Something went wrong. Please try again later or contact support.", "INTERNAL_SERVER_ERROR"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.refusal.Status, tt.refusal.Kind), func(t *testing.T) {
			out := api.Refuse(tt.refusal)
			a := read(t, out)
			if out.Status != tt.status || a.Errors[0].Message != tt.message || a.Errors[0].Extensions["code"] != tt.code {
				t.Errorf("got %d %s, want %d %q %s", out.Status, out.Body, tt.status, tt.message, tt.code)
			}
			if out.ContentType != "application/json" || out.Header.Get("Deprecation") == "" {
				t.Errorf("content type %q, headers %v", out.ContentType, out.Header)
			}
			for name, want := range map[string]string{"policy": strings.Join(translate.Texts(tt.refusal.Body, "policies"), ""), "decision": translate.Text(tt.refusal.Body, "decision"), "kind": tt.refusal.Kind} {
				if got, _ := a.Errors[0].Extensions[name].(string); got != want {
					t.Errorf("%s %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestFailures maps what v2 may answer to what clients understand.
func TestFailures(t *testing.T) {
	const get, stop = `{ pod(input: {podId: "p"}) { id } }`, `mutation { podStop(input: {podId: "p"}) { id } }`
	tests := []struct {
		name, v2, document string
		status             int
		message, code      string
	}{
		{"400", `podAction 400 {"detail":"not like this"}`, stop, 200, "not like this", "BAD_USER_INPUT"},
		{"401", `podAction 401 {"detail":"x"}`, stop, 401, "Unauthorized: x", "UNAUTHENTICATED"},
		{"402", `podAction 402 {"detail":"no money"}`, stop, 200, "no money", "INSUFFICIENT_FUNDS"},
		{"403", `podAction 403 {"detail":"access denied"}`, stop, 200, "Forbidden: access denied", "FORBIDDEN"},
		{"404 of a query", `getPod 404 {}`, get, 200, "", ""},
		{"404 of a mutation", `podAction 404 {}`, stop, 200, "pod not found", "POD_NOT_FOUND"},
		{"409 of another kind", `podAction 409 {"detail":"cluster member"}` + "\ngetPod 200 {\"id\":\"p\",\"status\":\"RUNNING\"}", stop, 200, "cluster member", "BAD_USER_INPUT"},
		{"413", `podAction 413 {"title":"Content Too Large"}`, stop, 413, "Content Too Large", "PAYLOAD_TOO_LARGE"},
		{"422", `podAction 422 {"detail":"invalid","errors":["$.a: b","$.c: d"]}`, stop, 200, "invalid: $.a: b", "BAD_USER_INPUT"},
		{"429", `podAction 429 {}`, stop, 429, "too many requests", "RATE_LIMITED"},
		{"500", `podAction 500 {"detail":"secret"}`, stop, 200, "Something went wrong. Please try again later or contact support.", "INTERNAL_SERVER_ERROR"},
		{"lost", `podAction 0`, stop, 200, "Something went wrong. Please try again later or contact support.", "INTERNAL_SERVER_ERROR"},
		{"an action repeated once", "podAction 502 {}\npodAction 200 @running", stop, 200, "", ""},
		{"a read repeated", "getPod 500 {}\ngetPod 0\ngetPod 200 @running", get, 200, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := newRig(t).ask(t, newScript(t, tt.v2), tt.document, "")
			a := read(t, out)
			if out.Status != tt.status {
				t.Errorf("status %d, want %d", out.Status, tt.status)
			}
			if tt.code == "" {
				if len(a.Errors) > 0 {
					t.Errorf("got %s, want no error", out.Body)
				}
				return
			}
			if len(a.Errors) != 1 || a.Errors[0].Message != tt.message || a.Errors[0].Extensions["code"] != tt.code {
				t.Errorf("got %s, want %q %s", out.Body, tt.message, tt.code)
			}
			if tt.status == 429 && out.Header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q, want 1", out.Header.Get("Retry-After"))
			}
			if (tt.status == 401) == (a.Data != nil) {
				t.Errorf("data %v with status %d", a.Data, tt.status)
			}
		})
	}
}

// TestHeaders looks at the migration signals.
func TestHeaders(t *testing.T) {
	r := newRig(t, func(c *graphql.Config) { c.Legacy.Sunset = "2027-03-01" })
	v2 := callerFunc(func(_ context.Context, q *translate.Request) (*translate.Response, error) {
		h := http.Header{"Ratelimit": {`"minute";r=9;t=2`}, "Server": {"x"}, "Set-Cookie": {"a=b"}}
		if q.Operation == "listPods" {
			return &translate.Response{Status: 200, Header: h, Body: fixture(t, "@pods")}, nil
		}
		return &translate.Response{Status: 200, Header: h, Body: fixture(t, "@gpus")}, nil
	})
	out := r.ask(t, v2, `{ myself { pods { machine { gpuDisplayName } } } }`, "")
	want := http.Header{
		"Deprecation":             {"@1794700800"},
		"Sunset":                  {"Mon, 01 Mar 2027 00:00:00 GMT"},
		"Link":                    {`</v2/openapi.json>; rel="successor-version"`},
		"X-Tollgate-V2-Operation": {"listPods, listGpuTypes"},
		"Ratelimit":               {`"minute";r=9;t=2`},
	}
	if diff := cmp.Diff(want, out.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"listPods", "listGpuTypes"}, out.V2); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
}

// TestBrandless answers whatever name a client has for the platform, in fields,
// inputs and variables; a brand takes itself alone.
func TestBrandless(t *testing.T) {
	ask := func(brand, document, variables string) string {
		r := newRig(t, func(c *graphql.Config) { c.Legacy.Brand = brand })
		v2 := newScript(t, `listPublicTemplates 200 {"templates":[{"id":"t1"}]}`)
		return string(r.ask(t, v2, document, variables).Body)
	}
	const inline, want = `{ podTemplates(input: {isAcme: true}) { id isAcme } }`, `{"data":{"podTemplates":[{"id":"t1","isAcme":true}]}}`
	for name, got := range map[string]string{
		"any name":     ask("", inline, ""),
		"in variables": ask("", `query($in: PodTemplateInput) { podTemplates(input: $in) { id ...f } } fragment f on PodTemplate { isAcme }`, `{"in":{"isAcme":true}}`),
		"the brand":    ask("Acme", inline, ""),
	} {
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := ask("Globex", inline, ""); !strings.Contains(got, `Cannot query field \"isAcme\"`) {
		t.Errorf("another brand's member: %s", got)
	}
}

// TestRawDocument sends the document without JSON around it.
func TestRawDocument(t *testing.T) {
	in := &translate.Incoming{
		Account: account, Body: `{ __typename }`, HasBody: true,
		Header: http.Header{"Content-Type": {"application/graphql; charset=utf-8"}},
	}
	if out := newRig(t).api.Serve(t.Context(), in, nil); string(out.Body) != `{"data":{"__typename":"Query"}}` {
		t.Errorf("got %d %s", out.Status, out.Body)
	}
}

// TestNothingGiven must not break anything.
func TestNothingGiven(t *testing.T) {
	api := newRig(t).api
	if out := api.Serve(t.Context(), nil, nil); out == nil || out.Status != 401 {
		t.Errorf("no request: got %+v", out)
	}
	out := api.Serve(t.Context(), &translate.Incoming{Account: account, Body: map[string]any{"query": `{ myself { id } gpuTypes { id } }`}}, nil)
	if a := read(t, out); len(a.Errors) != 2 {
		t.Errorf("no caller: got %d %s", out.Status, out.Body)
	}
}
