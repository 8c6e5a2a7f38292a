package hostile

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAnswersAreFiltered: a header of the platform's answer reaches the caller only if it
// is on the list.
func TestAnswersAreFiltered(t *testing.T) {
	t.Parallel()
	s := open(t, answering(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Set-Cookie": "session=x", "Location": "http://evil/", "Server": "x", "X-Powered-By": "x", "Via": "1.1 x",
			"Access-Control-Allow-Origin": "*", "Strict-Transport-Security": "max-age=1", "Alt-Svc": `h3="evil:443"`,
			"Content-Security-Policy": "x", "Refresh": "0;url=http://evil/", "Link": "<http://evil/>; rel=preload", "Trailer": "X-Late",
			"X-Echo": pk, "WWW-Authenticate": "Basic", "Proxy-Authenticate": "Basic", "Clear-Site-Data": "*", "Keep-Alive": "timeout=1",
			"RateLimit": `"minute";r=0;t=60`, "RateLimit-Policy": `"minute";q=1;w=60`, "Retry-After": "9999", "X-Request-Id": "theirs",
			"X-Tollgate-Decision": "theirs", "X-Tollgate-Warning": "theirs", "Content-Language": "de", "ETag": `"x"`,
			"Cache-Control": "max-age=60, Public",
		} {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"pods":[]}`)
		w.Header().Set("X-Late", pk)
	}))
	a := s.ask(t, request("GET", "/v2/pods", k1, ""))
	if a.Status != 200 || a.Body != `{"pods":[],"pagination":{"nextCursor":null,"hasNextPage":false}}` {
		t.Fatalf("answer %d %s", a.Status, a.Body)
	}
	want := []string{"Content-Type", "Date", "Ratelimit", "Ratelimit-Policy", "X-Content-Type-Options", "X-Request-Id", "X-Tollgate-Decision"}
	got := slices.Sorted(maps.Keys(a.Header))
	got = slices.DeleteFunc(got, func(name string) bool { return name == "Content-Length" })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(a.Header), "theirs") || !strings.Contains(a.Header.Get("Ratelimit"), "r=5999") {
		t.Errorf("headers %v hold the platform's own values", a.Header)
	}
}

// TestContentThatIsNoDataHasNoOrigin: a response that a browser may show as a document has the sandbox policy, whatever its name and its spelling.
func TestContentThatIsNoDataHasNoOrigin(t *testing.T) {
	t.Parallel()
	var declared []string // one call at a time
	s := open(t, answering(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = declared
		w.Header().Set("Content-Security-Policy", "default-src *")
		_, _ = io.WriteString(w, `"<script>alert(document.domain)</script>"`)
	}))
	for contentType, want := range map[string]string{
		"text/html": "sandbox", "TEXT/HTML;charset=utf-8": "sandbox", "application/xhtml+xml": "sandbox", "image/svg+xml": "sandbox", "text/xml": "sandbox", "text/plain": "sandbox",
		"application/json+html": "sandbox", "": "sandbox", "application/json": "", "application/json;charset=utf-8": "", "text/event-stream": "",
	} {
		if declared = nil; contentType != "" {
			declared = []string{contentType}
		}
		a := s.ask(t, request("GET", "/v2/pods/pod1", k1, ""))
		if got := a.Header.Get("Content-Security-Policy"); a.Status != 200 || got != want || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d with %q, want %q", contentType, a.Status, a.Header, want)
		}
	}
}

// TestUnsolicitedAnswers: what the platform sends on an idle connection is the answer to no call.
func TestUnsolicitedAnswers(t *testing.T) {
	t.Parallel()
	const answer, wrong = `{"pods":[]}`, `{"pods":["of another caller"]}`
	head := func(body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
	}
	for name, unsolicited := range map[string]string{
		"a response": head(wrong) + wrong, "a part of a head": "HTTP/1.1 200", "its body alone": wrong, "a line": "\r\n", "an informational one": "HTTP/1.1 103 Early Hints\r\n\r\n", "two": head(answer) + answer + head(wrong) + wrong,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more, said := make(chan struct{}), make(chan struct{})
			s := open(t, answering(func(w http.ResponseWriter, _ *http.Request) {
				conn, in, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				go func() {
					defer func() { _ = conn.Close() }()
					_, _ = io.WriteString(conn, head(answer)+answer)
					<-more
					_, _ = io.WriteString(conn, unsolicited)
					said <- struct{}{}
					if _, err := http.ReadRequest(in.Reader); err == nil {
						t.Error("a connection on which something had come was used again")
						_, _ = io.WriteString(conn, head(wrong)+wrong)
					}
				}()
			}))
			for i := range 25 {
				if a := s.ask(t, request("GET", "/v2/pods", k1, "")); a.Status != 200 || strings.Contains(a.Body, "another") {
					t.Fatalf("call %d: %d %s", i, a.Status, a.Body)
				}
				more <- struct{}{}
				<-said
			}
		})
	}
}

// TestUnknownStatusesAreNotRelayed: a status outside of RFC 9110 is 502.
func TestUnknownStatusesAreNotRelayed(t *testing.T) {
	t.Parallel()
	s := open(t, answering(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(799)
		_, _ = io.WriteString(w, `{"pods":[]}`)
	}))
	for _, target := range []string{"/v2/pods", "/v1/pods"} {
		if a := s.ask(t, request("GET", target, k1, "")); a.Status != http.StatusBadGateway {
			t.Errorf("GET %s: %d %s, want 502", target, a.Status, a.Body)
		}
	}
}

// TestAnswersThatBreakOff: half an answer is refused, in v2 and in the dialects, for
// reads and for changes.
func TestAnswersThatBreakOff(t *testing.T) {
	t.Parallel()
	s := open(t, answering(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"pods":[`)
	}))
	for name, raw := range map[string]string{
		"v2 read":  request("GET", "/v2/pods", k1, ""),
		"v2 state": request("PATCH", "/v2/pods/pod1", k1, `{"name":"b"}`),
		"v2 end":   request("DELETE", "/v2/pods/pod1", k1, ""),
		"v1 read":  request("GET", "/v1/pods", k1, ""),
	} {
		a := s.ask(t, raw)
		if a.Status != 502 || !strings.Contains(a.Body, "did not send a complete response") {
			t.Errorf("%s: %d %s, want 502", name, a.Status, a.Body)
		}
		if a.Header.Get("Ratelimit") == "" {
			t.Errorf("%s: no RateLimit header", name)
		}
	}
}

// TestEveryAnswerOfAMaliciousPlatform: with every answer, callers learn nothing of the
// credential, are not sent elsewhere, and get JSON.
func TestEveryAnswerOfAMaliciousPlatform(t *testing.T) {
	t.Parallel()
	evil := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(evil.Close)
	calls := map[string]string{
		"v2 read":        request("GET", "/v2/pods", k1, ""),
		"v2 create":      post(allowed),
		"v2 update":      request("PATCH", "/v2/pods/pod1", k1, `{"name":"b"}`),
		"v2 action":      request("POST", "/v2/pods/pod1/action", k1, `{"action":"stop"}`),
		"v1 delete":      request("DELETE", "/v1/pods/pod1", k1, ""),
		"graphql delete": request("POST", "/graphql", k1, `{"query":"mutation { podTerminate(input: {podId: \"pod1\"}) }"}`),
	}
	for name, answer := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, evil.URL+"/?"+r.Header.Get("Authorization"), http.StatusTemporaryRedirect)
		},
		"permanent redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, evil.URL, http.StatusMovedPermanently)
		},
		"not modified": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
		"echo in an error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{
				"title": r.Header.Get("Authorization"), "detail": fmt.Sprint(r.Header), "errors": []string{pk, "a " + pk + " b"},
				"debug": r.Header, "account": "someone@else.test",
			})
		},
		"echo as text": func(w http.ResponseWriter, r *http.Request) { http.Error(w, fmt.Sprint(r.Header), http.StatusConflict) },
		"its own 401": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+r.Header.Get("Authorization")+`"`)
			http.Error(w, `{"detail":"key `+pk+` is revoked"}`, http.StatusUnauthorized)
		},
		"server fault": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, fmt.Sprint(r.Header), http.StatusNotImplemented)
		},
		"early hints": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "<http://evil/>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNotFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, answering(answer), looking(time.Second))
			t.Run("call", func(t *testing.T) {
				for kind, raw := range calls {
					t.Run(kind, func(t *testing.T) {
						t.Parallel() // a create is looked for
						checkMalice(t, s.ask(t, raw), strings.HasPrefix(kind, "graphql"), evil.URL)
					})
				}
			})
			if logs := s.logs.String(); strings.Contains(logs, canary) || strings.Contains(logs, k1) {
				t.Error("the log tells too much")
			}
		})
	}
}

// checkMalice checks the answer to a call that the platform answered with
// malice. GraphQL tells of errors with 200.
func checkMalice(t *testing.T, a answer, inBody bool, evil string) {
	t.Helper()
	all := fmt.Sprint(a.Header) + a.Body
	for _, secret := range []string{canary, "evil", evil, "someone@else"} {
		if strings.Contains(all, secret) {
			t.Errorf("the answer tells of %s: %d %s", secret, a.Status, all)
		}
	}
	if a.Status < 400 && !inBody || a.Status == http.StatusUnauthorized {
		t.Errorf("answer %d %s", a.Status, a.Body)
	}
	if a.Body != "" && !json.Valid([]byte(a.Body)) {
		t.Errorf("body %q is not JSON", a.Body)
	}
}

// TestNothingTellsSecrets: after calls of every kind and end, neither log nor
// metrics hold the platform's key or a caller's.
func TestNothingTellsSecrets(t *testing.T) {
	t.Parallel()
	s := open(t)
	const read = `{"query":"{ pod(input: {podId: \"pod1\"}) { id } }"}`
	for _, raw := range []string{
		request("GET", "/v2/pods", k1, ""), request("GET", "/v2/nowhere", k1, ""), request("GET", "/v2/pods/../x", k1, ""),
		post(allowed), post(`{`), post(`{"name":"x","image":"i","gpu":{"id":"NVIDIA H200"}}`), request("GET", "/v2/pods", k1+"x", ""),
		request("POST", "/graphql?api_key="+k1, "", read), request("POST", "/graphql?api_key="+k1+"&api_key="+k2, "", read),
		request("POST", "/graphql?api_key="+k1+"x", "", read), request("GET", "/graphql?api_key="+k1, "", ""),
		request("POST", "/graphql/nowhere?api_key="+k1, "", read), request("POST", "/graphql?api_key="+k1+";", "", read),
		request("GET", "/v2/pods?api_key="+k1, "", ""), request("GET", "/v1/pods?api_key="+k1, k1, ""),
		request("GET", "/v2/pods", "", "", "Authorization: Basic "+k1), request("GET", "/v2/pods", k1, "", "Authorization: Bearer "+k2),
		request("GET", "/v2/pods", k1, "", "User-Agent: a\tb"),
	} {
		a := s.ask(t, raw)
		if all := fmt.Sprint(a.Header) + a.Body; strings.Contains(all, canary) || strings.Contains(all, k1) || strings.Contains(all, k2) {
			t.Errorf("%.60q: the answer holds a secret: %s", raw, all)
		}
	}
	w := httptest.NewRecorder()
	s.metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	logs := s.logs.String()
	for _, secret := range []string{canary, k1, k2} {
		if strings.Contains(logs, secret) {
			t.Errorf("the log holds %s", secret)
		}
		if strings.Contains(w.Body.String(), secret) {
			t.Errorf("the metrics hold %s", secret)
		}
	}
	for line := range strings.Lines(logs) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line %q is not one JSON object", line)
		}
	}
}

// TestLogsHoldOneLineAnExchange: no text of a caller's makes a line of its own.
func TestLogsHoldOneLineAnExchange(t *testing.T) {
	t.Parallel()
	s := open(t)
	before := len(s.logs.Exchanges(t))
	forged := `x"}\n{"level":"INFO","msg":"exchange","status":200}`
	for _, raw := range []string{
		request("GET", "/v2/pods", k1, "", "User-Agent: "+forged, "X-Request-Id: "+forged),
		request("GET", "/v2/"+strings.NewReplacer(`"`, "%22", `\`, "", " ", "%20", "{", "%7b", "}", "%7d").Replace(forged), k1, ""),
		post(`{"name":"x\n{\"level\":\"INFO\",\"msg\":\"exchange\"}\u2028\u001b[31m","image":"i","gpu":{"id":"NVIDIA A40"}}`),
		request("GET", "/v2/pods", "", "", "Authorization: Bearer "+forged),
	} {
		s.ask(t, raw)
	}
	if n := len(s.logs.Exchanges(t)) - before; n != 4 {
		t.Errorf("%d events for 4 exchanges", n)
	}
}

// TestSeriesAreBounded: strangers cannot make metrics grow.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t)
	series := func() int {
		w := httptest.NewRecorder()
		s.metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return strings.Count(w.Body.String(), "\ntollgate_")
	}
	one := func(i int) {
		s.ask(t, request("GET", fmt.Sprintf("/v2/pods/id%d", i), k1, ""))
		s.ask(t, request("GET", fmt.Sprintf("/path%d", i), k1, ""))
		s.ask(t, request(fmt.Sprintf("METHOD%d", i), "/v2/pods", k1, ""))
		s.ask(t, request("GET", "/v2/pods", fmt.Sprintf("unknown_key_%d", i), ""))
		s.ask(t, post(fmt.Sprintf(`{"name":"x","image":"i","gpu":{"id":"GPU %d"}}`, i)))
	}
	one(0)
	before := series()
	for i := range 20 {
		one(i + 1)
	}
	if after := series(); after != before || before == 0 {
		t.Errorf("%d series before, %d after", before, after)
	}
}
