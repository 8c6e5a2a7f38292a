package hostile

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// changes counts the changes that the platform was asked for.
func changes(calls []call) (n int) {
	for _, c := range calls {
		if c.Method != http.MethodGet {
			n++
		}
	}
	return n
}

func graphql(t *testing.T, query string, variables any) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	return request("POST", "/graphql", k1, string(body))
}

const deploy = `podFindAndDeployOnDemand(input: {name: "a", imageName: "img:1", gpuTypeId: "NVIDIA A40", cloudType: SECURE, gpuCount: 1})`

// TestOneGraphQLRequestIsOneChange: no spelling of a document makes two.
func TestOneGraphQLRequestIsOneChange(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, query := range map[string]string{
		"aliases":            `mutation { a: ` + deploy + ` { id } b: ` + deploy + ` { id } }`,
		"same field twice":   `mutation { ` + deploy + ` { id } x: podTerminate(input: {podId: "p1"}) }`,
		"fragment":           `mutation { ...f x: ` + deploy + ` { id } } fragment f on Mutation { ` + deploy + ` { id } }`,
		"inline fragments":   `mutation { ... on Mutation { a: ` + deploy + ` { id } } ... on Mutation { b: ` + deploy + ` { id } } }`,
		"two operations":     `mutation A { ` + deploy + ` { id } } mutation B { ` + deploy + ` { id } }`,
		"subscription":       `subscription { x }`,
		"unknown field":      `mutation { podSteal(input: {podId: "p1"}) { id } }`,
		"cyclic fragment":    `query { ...f } fragment f on Query { ...f }`,
		"flood of tokens":    `{` + strings.Repeat(` __typename`, 2000) + `}`,
		"flood of directive": `{ __typename` + strings.Repeat(` @a`, 2000) + ` }`,
		"flood of aliases":   aliases(200),
		"deep":               strings.Repeat("{ a ", 500) + strings.Repeat("}", 500),
	} {
		a := s.ask(t, graphql(t, query, nil))
		if n := changes(s.recorder.take()); n != 0 {
			t.Errorf("%s: %d changes at the platform, want the document refused whole", name, n)
		}
		if !strings.Contains(a.Body, `"errors":`) || len(a.Body) > 64<<10 {
			t.Errorf("%s: answer %d %.300s, want errors", name, a.Status, a.Body)
		}
	}
	if a := s.ask(t, graphql(t, exponential(30), nil)); len(a.Body) > 1<<10 {
		t.Errorf("exponential fragments: answer of %d bytes, want them merged or refused", len(a.Body))
	}
	a := s.ask(t, graphql(t, `mutation { `+deploy+` { id } }`, nil))
	if n := changes(s.recorder.take()); n != 1 || strings.Contains(a.Body, `"errors"`) {
		t.Errorf("one mutation: %d changes, answer %d %s", n, a.Status, a.Body)
	}
}

func exponential(levels int) string {
	var b strings.Builder
	b.WriteString("query { ...f0 }")
	for i := range levels {
		name, next := "f"+strings.Repeat("x", i), "f"+strings.Repeat("x", i+1)
		b.WriteString(" fragment " + name + " on Query { ..." + next + " ..." + next + " }")
	}
	return strings.Replace(b.String(), "...f0", "...f", 1) + " fragment f" + strings.Repeat("x", levels) + " on Query { __typename }"
}

func aliases(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(" a" + strings.Repeat("x", b.Len()%97) + ": __typename")
	}
	return "{" + b.String() + " }"
}

// TestLegacyCallersCannotDodge: what v2 refuses, the old dialects refuse too,
// however it is spelled.
func TestLegacyCallersCannotDodge(t *testing.T) {
	t.Parallel()
	s := open(t)
	h200 := strings.Replace(deploy, "NVIDIA A40", "NVIDIA H200", 1)
	for name, raw := range map[string]string{
		"v1":                     request("POST", "/v1/pods", k1, `{"imageName":"i","gpuTypeIds":["NVIDIA H200"]}`),
		"v1 with slashes":        request("POST", "//v1//pods/", k1, `{"imageName":"i","gpuTypeIds":["NVIDIA H200"]}`),
		"v1 with a slash behind": request("POST", "/v1/pods/", k1, `{"imageName":"i","gpuTypeIds":["NVIDIA H200"]}`),
		"graphql":                graphql(t, `mutation { `+h200+` { id } }`, nil),
		"graphql escape":         graphql(t, `mutation { `+strings.Replace(h200, "H200", `H\u003200`, 1)+` { id } }`, nil),
		"graphql block string":   graphql(t, `mutation { `+strings.Replace(h200, `"NVIDIA H200"`, `"""NVIDIA H200"""`, 1)+` { id } }`, nil),
		"graphql variable": graphql(t, `mutation($g: String) { podFindAndDeployOnDemand(input: {name: "a", imageName: "img:1", gpuTypeId: $g, cloudType: SECURE}) { id } }`,
			map[string]any{"g": "NVIDIA H200"}),
		"graphql default":  graphql(t, `mutation($g: String = "NVIDIA H200") { podFindAndDeployOnDemand(input: {name: "a", imageName: "img:1", gpuTypeId: $g, cloudType: SECURE}) { id } }`, nil),
		"graphql count":    graphql(t, `mutation { `+strings.Replace(deploy, "gpuCount: 1", "gpuCount: 9", 1)+` { id } }`, nil),
		"v1 count":         request("POST", "/v1/pods", k1, `{"imageName":"i","gpuTypeIds":["NVIDIA A40"],"gpuCount":9}`),
		"v1 with fallback": request("POST", "/v1/pods", k1, `{"imageName":"i","gpuTypeIds":["NVIDIA H200","NVIDIA H200","nvidia a40"],"gpuTypePriority":"custom"}`),
	} {
		a := s.ask(t, raw)
		if n := changes(s.recorder.take()); n != 0 {
			t.Errorf("%s: %d changes at the platform, want none", name, n)
		}
		if a.Status < 400 && !strings.Contains(a.Body, `"errors":`) {
			t.Errorf("%s: answer %d %s, want a refusal", name, a.Status, a.Body)
		}
	}
}

// TestQuotasCannotBeDodged: whatever an identified caller does wrong counts.
func TestQuotasCannotBeDodged(t *testing.T) {
	t.Parallel()
	s := open(t)
	used := 0
	for name, raw := range map[string]string{
		"unknown path":    request("GET", "/v2/nope", few, ""),
		"unknown method":  request("BREW", "/v2/pods", few, ""),
		"bad path":        request("GET", "/v2/pods/..", few, ""),
		"bad query":       request("GET", "/v2/pods?a=1;b", few, ""),
		"bad body":        request("POST", "/v2/pods", few, "{"),
		"bad media type":  request("POST", "/v2/pods", few, allowed, "Content-Type: text/plain"),
		"forbidden":       request("POST", "/v2/pods", few, `{"name":"x","image":"i","gpu":{"id":"NVIDIA H200"}}`),
		"unknown, v1":     request("GET", "/v1/nope", few, ""),
		"bad graphql":     request("POST", "/graphql", few, "{"),
		"api description": request("GET", "/v2/openapi.json", few, ""),
		"address changed": request("GET", "/v2/nope", few, "", "X-Forwarded-For: 10.0.0.1", "X-Real-IP: 10.0.0.2"),
		"scheme changed":  request("GET", "/v2/nope", "", "", "Authorization: bEARER "+few),
	} {
		raw = strings.ReplaceAll(raw, few, fewKey(used)) // each case uses up a key of its own
		used++
		for range 5 {
			if a := s.ask(t, raw); a.Status == 429 {
				t.Errorf("%s: refused before the quota was used", name)
			}
		}
		a := s.ask(t, raw)
		if a.Status != 429 && !strings.Contains(a.Body, "rate limit") || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: the sixth answer of five is %d %s, want 429 with Retry-After", name, a.Status, a.Body)
		}
	}
}
