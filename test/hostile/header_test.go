package hostile

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// names lists the headers the platform sees of a call with a body.
func names(c call) []string { return slices.Sorted(maps.Keys(c.Header)) }

// TestOnlyListedHeadersPass: for all that a stranger adds, the platform sees the same
// list, and in it the gateway's values.
func TestOnlyListedHeadersPass(t *testing.T) {
	t.Parallel()
	s := open(t)
	plain := []string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "User-Agent", "X-Request-Id"}
	for name, header := range map[string][]string{
		"nothing added":    nil,
		"forwarding":       {"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: admin.gw", "X-Forwarded-Proto: https", "X-Real-IP: 127.0.0.1", "Forwarded: for=127.0.0.1", "Via: 1.1 x", "X-Envoy-Original-Path: /v2/account/ssh-keys"},
		"identity":         {"X-Org-Id: globex", "X-Tollgate-Org: globex", "X-User: admin", "X-Api-Key: " + k2},
		"rewriting":        {"X-Original-URL: /v2/account/ssh-keys", "X-Rewrite-URL: /v2/billing", "X-Middleware-Subrequest: a:a:a", "X-HTTP-Method-Override: DELETE", "X-HTTP-Method: DELETE", "X-Method-Override: DELETE"},
		"conditions":       {"Range: bytes=" + strings.Repeat("0-0,", 1000) + "0-0", "If-None-Match: *", "If-Match: *", "If-Modified-Since: Sat, 21 Nov 2026 10:00:00 GMT", "If-Range: x"},
		"content":          {"Accept: text/html", "Accept-Encoding: gzip, br, zstd", "Accept-Language: de", "Content-Language: de", "Content-Location: /v2/x", "Content-Disposition: x", "TE: trailers, gzip", "Trailer: Authorization"},
		"state":            {"Cookie: session=" + k2, "Cookie2: x", "Referer: http://evil/", "Origin: http://evil", "Authorization-Info: x", "Proxy-Authorization: Bearer x", "Proxy-Connection: close", "Proxy-Authenticate: x"},
		"tracing":          {"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate: a=b", "Baggage: k=v", "X-B3-TraceId: 1"},
		"named hop-by-hop": {"Connection: authorization, content-type, x-request-id, user-agent, accept", "Keep-Alive: timeout=5"},
		"in small letters": {"connection: authorization", "x-original-url: /x", "cookie: a=b"},
		"streaming":        {"Last-Event-ID: 7"},
		"idempotency":      {"Idempotency-Key: abc"},
	} {
		a := s.ask(t, request("POST", "/v2/pods", k1, allowed, header...))
		if a.Status != 201 {
			t.Errorf("%s: answer %d %s, want 201", name, a.Status, a.Body)
			continue
		}
		calls := s.recorder.take()
		if len(calls) != 1 {
			t.Errorf("%s: the platform got %d calls, want 1", name, len(calls))
			continue
		}
		c := calls[0]
		if diff := cmp.Diff(plain, names(c)); diff != "" {
			t.Errorf("%s: headers (-want +got):\n%s", name, diff)
		}
		for field, want := range map[string]string{
			"Authorization": "Bearer " + pk, "Accept-Encoding": "identity", "User-Agent": "tollgate/test", "Content-Type": "application/json",
		} {
			if got := c.Header.Values(field); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s = %q, want %q", name, field, got, want)
			}
		}
		if c.Method != "POST" || c.Target != "/v2/pods" || c.Host != s.recorder.addr {
			t.Errorf("%s: the platform got %s %s at %s", name, c.Method, c.Target, c.Host)
		}
	}
}

// TestHopByHopNames: no order or case of the names in Connection takes away the gateway's
// own headers.
func TestHopByHopNames(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, name := range []string{"authorization", "Authorization", "AUTHORIZATION", "x-request-id", "Content-Type", "content-length", "host", "User-Agent"} {
		for _, list := range []string{name, "close, " + name, name + ", keep-alive", "x," + name + ",y"} {
			a := s.ask(t, request("POST", "/v2/pods", k1, allowed, "Connection: "+list))
			calls := s.recorder.take()
			if a.Status != 201 || len(calls) != 1 {
				t.Fatalf("Connection: %s: answer %d, %d calls", list, a.Status, len(calls))
			}
			c := calls[0]
			if c.Header.Get("Authorization") != "Bearer "+pk || c.Header.Get("X-Request-Id") == "" || c.Header.Get("Content-Type") == "" || c.Header.Get("Connection") != "" {
				t.Errorf("Connection: %s: the platform got %v", list, c.Header)
			}
		}
	}
}

// TestCredentials: one, in one grammar.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := open(t)
	with := func(lines ...string) string { return request("GET", "/v2/pods", "", "", lines...) }
	const query = `{"query":"{ __typename }"}`
	refusals(t, s, map[string]refusal{
		"none":                      {with(), 401},
		"empty":                     {with("Authorization:"), 401},
		"scheme only":               {with("Authorization: Bearer"), 401},
		"two spaces and no key":     {with("Authorization: Bearer  "), 401},
		"tab":                       {with("Authorization: Bearer\t" + k1), 401},
		"space behind is not a key": {with("Authorization: Bearer " + k1 + " x"), 401},
		"two in a list":             {with("Authorization: Bearer " + k1 + "," + k2), 401},
		"two in a list, spaced":     {with("Authorization: Bearer " + k1 + ", Bearer " + k2), 401},
		"basic":                     {with("Authorization: Basic a2V5X3Jlc2VhcmNoXzE6"), 401},
		"bare":                      {with("Authorization: " + k1), 401},
		"quoted":                    {with(`Authorization: Bearer "` + k1 + `"`), 401},
		"near miss":                 {with("Authorization: Bearer " + k1[:len(k1)-1]), 401},
		"other case":                {with("Authorization: Bearer " + strings.ToUpper(k1)), 401},
		"its digest":                {with("Authorization: Bearer " + strings.Repeat("ab", 32)), 401},
		"injection":                 {with("Authorization: Bearer x' OR 1=1--"), 401},
		"store key":                 {with("Authorization: Bearer tollgate:*:acme"), 401},
		"long":                      {with("Authorization: Bearer " + strings.Repeat("a", 8000)), 401},
		"too long for a header":     {with("Authorization: Bearer " + strings.Repeat("a", 10<<10)), 431},
		"two headers":               {with("Authorization: Bearer "+k1, "Authorization: Bearer "+k2), 400},
		"two headers, same key":     {with("Authorization: Bearer "+k1, "authorization: Bearer "+k1), 400},
		"header and garbage header": {with("Authorization: Bearer "+k1, "Authorization: x"), 400},
		"in the query":              {request("GET", "/v2/pods?api_key="+k1, "", ""), 401},
		"in the query of v1":        {request("GET", "/v1/pods?api_key="+k1, "", ""), 401},
		"in a cookie":               {with("Cookie: api_key=" + k1), 401},
		"in another header":         {with("X-Api-Key: " + k1), 401},
		"beside a parameter":        {request("GET", "/v2/pods?api_key="+k1, k1, ""), 400},
		"beside an escaped one":     {request("GET", "/v2/pods?%61pi_key="+k2, k1, ""), 400},
		"beside one in v1":          {request("GET", "/v1/pods?api_key="+k2, k1, ""), 400},
		"beside one, no such route": {request("GET", "/v2/nope?api_key="+k2, k1, ""), 400},
		"two in GraphQL":            {request("POST", "/graphql?api_key="+k1, k2, query), 400},
		"same twice in GraphQL":     {request("POST", "/graphql?api_key="+k1, k1, query), 400},
		"two parameters in GraphQL": {request("POST", "/graphql?api_key="+k1+"&api_key="+k1, "", query), 400},
		"escaped name in GraphQL":   {request("POST", "/graphql?api_key="+k1+"&%61pi_key="+k2, "", query), 400},
		"platform key as ours":      {with("Authorization: Bearer " + pk), 401},
	})
	if a := s.ask(t, with("Authorization: bearer "+k1)); a.Status != 200 {
		t.Errorf("scheme in small letters: answer %d, want 200", a.Status)
	}
}

// TestUnderscores: names that other servers fold into trusted ones.
func TestUnderscores(t *testing.T) {
	t.Parallel()
	s := open(t)
	table := make(map[string]refusal)
	for _, name := range []string{"X_Forwarded_For", "Content_Length", "Transfer_Encoding", "X_Org_Id", "_", "Host_"} {
		table[name] = refusal{request("POST", "/v2/pods", k1, allowed, name+": 1"), 400}
	}
	table["101 headers"] = refusal{request("POST", "/v2/pods", k1, allowed, slices.Repeat([]string{"A: b"}, 101)...), 431}
	table["one of 9 KB"] = refusal{request("POST", "/v2/pods", k1, allowed, "A: "+strings.Repeat("a", 9<<10)), 431}
	refusals(t, s, table)
}
