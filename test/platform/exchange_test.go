package platform

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAuthentication(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: "k", Keys: []Key{
		{"ro", ReadOnly}, {"none", NoAccess}, {"off", Disabled},
	}}}})
	tests := []struct {
		name   string
		header []string
		method string
		status int
	}{
		{"none", nil, "GET", 401},
		{"good", []string{"Bearer k"}, "GET", 200},
		{"scheme in lower case", []string{"bearer k"}, "GET", 200},
		{"other scheme", []string{"Basic k"}, "GET", 401},
		{"bare", []string{"k"}, "GET", 401},
		{"empty", []string{"Bearer "}, "GET", 401},
		{"unknown", []string{"Bearer x"}, "GET", 401},
		{"two", []string{"Bearer k", "Bearer k"}, "GET", 401},
		{"disabled", []string{"Bearer off"}, "GET", 401},
		{"read only reads", []string{"Bearer ro"}, "GET", 200},
		{"read only writes", []string{"Bearer ro"}, "POST", 403},
		{"no access", []string{"Bearer none"}, "GET", 403},
	}
	for _, tt := range tests {
		req := httptest.NewRequest(tt.method, "/v2/pods", strings.NewReader(gpuPod))
		req.Header["Authorization"] = tt.header
		rec := httptest.NewRecorder()
		r.ServeHTTP(rec, req)
		limited := rec.Header().Get("RateLimit") != ""
		if rec.Code != tt.status || limited != (tt.status != 401) {
			t.Errorf("%s: got %d, rate headers %v; want %d and headers on all but 401", tt.name, rec.Code, limited, tt.status)
		}
	}
}

func TestSizeComesFirst(t *testing.T) {
	r := newRig(t, Options{})
	for name, length := range map[string]int64{"declared": maxBody + 1, "chunked": -1} {
		for _, target := range []string{"/v2/pods", "/nowhere"} {
			req := httptest.NewRequest(http.MethodPost, target, io.MultiReader(strings.NewReader(strings.Repeat(" ", maxBody+1))))
			req.ContentLength = length
			rec := httptest.NewRecorder()
			r.ServeHTTP(rec, req)
			if rec.Code != 413 {
				t.Errorf("%s %s: got %d, want 413 before authentication", name, target, rec.Code)
			}
		}
	}
	body := gpuPod + strings.Repeat(" ", maxBody-len(gpuPod))
	r.want(201, "POST", "/v2/pods", body)
}

func TestRateLimit(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{
		{ID: "a", Key: "a", Quota: Quota{Minute: 2, Hour: 3, Day: 9}}, {ID: "b", Key: "b"}, {ID: "e", Key: "e", Exempt: true},
	}})
	r.Clock().Advance(12 * time.Second)
	a := r.as("a").want(200, "GET", "/v2/pods", "")
	wantPolicy := `"minute";q=2;w=60, "hour";q=3;w=3600, "day";q=9;w=86400`
	wantLimit := `"minute";r=1;t=48, "hour";r=2;t=3588, "day";r=8;t=43188`
	if got := a.header.Get("RateLimit-Policy"); got != wantPolicy {
		t.Errorf("RateLimit-Policy: got %s, want %s", got, wantPolicy)
	}
	if got := a.header.Get("RateLimit"); got != wantLimit {
		t.Errorf("RateLimit: got %s, want %s", got, wantLimit)
	}
	r.as("a").want(404, "GET", "/v2/nowhere", "")
	over := r.as("a").want(429, "GET", "/v2/pods", "")
	if got, detail := over.header.Get("Retry-After"), over.text("detail"); got != "48" || detail != "rate limit exceeded for the minute window" {
		t.Errorf("got Retry-After %q, detail %q", got, detail)
	}
	r.as("b").want(200, "GET", "/v2/pods", "")
	r.Clock().Advance(48 * time.Second)
	r.as("a").want(200, "GET", "/v2/pods", "")
	over = r.as("a").want(429, "GET", "/v2/pods", "")
	if got := over.header.Get("Retry-After"); got != "3540" {
		t.Errorf("hour window: got Retry-After %q, want 3540", got)
	}
	if got := r.as("e").want(200, "GET", "/v2/pods", "").header.Get("RateLimit"); got != "" {
		t.Errorf("an exempt account got RateLimit %q", got)
	}
}

func TestRouting(t *testing.T) {
	r := newRig(t, Options{OpenAPI: []byte(`{"openapi":"3.1.0"}`)})
	r.want(404, "GET", "/v2/pods/", "")
	r.want(404, "GET", "/v2//pods", "")
	r.want(404, "GET", "/v2/pods/a%2Flogs", "")
	r.want(404, "GET", "/v2/%70ods", "")
	r.want(404, "GET", "/v2/pods/../pods", "")
	if a := r.want(405, "PUT", "/v2/pods", gpuPod); a.header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow: got %q", a.header.Get("Allow"))
	}
	if got := r.as("").want(200, "GET", "/v2/openapi.json", "").raw; got != `{"openapi":"3.1.0"}` {
		t.Errorf("openapi.json: got %s", got)
	}
	newRig(t, Options{}).want(404, "GET", "/v2/openapi.json", "")
	want := []string{"GET /v2/pods/", "GET /v2//pods", "GET /v2/%70ods", "GET /v2/pods/../pods", "PUT /v2/pods"}
	if diff := cmp.Diff(want, r.UnknownCalls()); diff != "" {
		t.Errorf("unknown calls (-want +got):\n%s", diff)
	}
}

func TestStrict(t *testing.T) {
	r := newRig(t, Options{Strict: true})
	r.want(400, "GET", "/v2/pods?bogus=1", "")
	r.want(400, "GET", "/v2/pods?includeClusterPods=true&includeClusterPods=true", "")
	r.want(400, "GET", "/v2/pods", "{}")
	req := httptest.NewRequest(http.MethodPost, "/v2/pods", strings.NewReader(gpuPod))
	req.Header.Set("Authorization", "Bearer "+DefaultKey)
	rec := httptest.NewRecorder()
	r.ServeHTTP(rec, req)
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), "Content-Type") {
		t.Errorf("no content type: got %d %s", rec.Code, rec.Body)
	}
	r.want(201, "POST", "/v2/pods", gpuPod)
	newRig(t, Options{}).want(200, "GET", "/v2/pods?bogus=1", "")
}

func TestIsolation(t *testing.T) {
	r := newRig(t, Options{Accounts: []Account{{ID: "a", Key: "a"}, {ID: "b", Key: "b"}}})
	id := r.as("a").newPod(gpuPod)
	b := r.as("b")
	b.want(404, "GET", "/v2/pods/"+id, "")
	b.want(404, "PATCH", "/v2/pods/"+id, "{}")
	b.want(404, "DELETE", "/v2/pods/"+id, "")
	b.want(404, "GET", "/v2/pods/"+id+"/logs", "")
	if got := b.want(200, "GET", "/v2/pods", "").raw; got != empty("pods") {
		t.Errorf("list of another account: got %s", got)
	}
	r.as("a").want(200, "GET", "/v2/pods/"+id, "")
}

func TestOptionsRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"same id":       {Accounts: []Account{{ID: "a", Key: "a"}, {ID: "a", Key: "b"}}},
		"same key":      {Accounts: []Account{{ID: "a", Key: "a"}, {ID: "b", Key: "a"}}},
		"no id":         {Accounts: []Account{{Key: "a"}}},
		"empty secret":  {Accounts: []Account{{ID: "a", Keys: []Key{{}}}}},
		"no such place": {Catalog: &Catalog{GPUs: []GPU{{ID: "x", DataCenters: []string{"nowhere"}}}}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: New took it", name)
		}
	}
}

func TestCallsAreRemembered(t *testing.T) {
	p := RunT(t, WithClock(ManualClock(start())))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/v2/pods?", strings.NewReader(gpuPod))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+DefaultKey)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("X-Marked", "yes")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	calls, err := p.waitCalls(t.Context(), "createPod", 1)
	if err != nil {
		t.Fatal(err)
	}
	c := calls[0]
	got := []any{c.Seq, c.Account, c.Operation, c.Method, c.Path, c.RawQuery, c.Header.Get("X-Marked"), string(c.Body), c.Time}
	want := []any{int64(1), "default", "createPod", "POST", "/v2/pods", "", "yes", gpuPod, start()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("call (-want +got):\n%s", diff)
	}
	p.ResetCalls()
	if n := len(p.Calls()); n != 0 {
		t.Errorf("after ResetCalls: %d calls", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.waitCalls(ctx, "", 1); err == nil {
		t.Error("waitCalls outlived its context")
	}
}

func TestCallsAreBounded(t *testing.T) {
	r := newRig(t, Options{KeepCalls: 3})
	for i := range 20 {
		r.want(404, "GET", "/v2/pods/p"+strconv.Itoa(i), "")
	}
	var paths []string
	for _, c := range r.Calls() {
		paths = append(paths, c.Path)
	}
	if diff := cmp.Diff([]string{"/v2/pods/p17", "/v2/pods/p18", "/v2/pods/p19"}, paths); diff != "" {
		t.Errorf("remembered calls (-want +got):\n%s", diff)
	}
	none := newRig(t, Options{KeepCalls: -1})
	none.want(200, "GET", "/v2/pods", "")
	if n := len(none.Calls()); n != 0 {
		t.Errorf("KeepCalls -1: %d calls", n)
	}
}

func TestAnswersAreJSON(t *testing.T) {
	for _, s := range []string{"", "plain", "\x00\x1f\"\\\n\r\t", "é😀", "bad \xff utf-8", "<&>"} {
		var got string
		if err := json.Unmarshal(appendText(nil, s), &got); err != nil || got != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q: got %q, %v", s, got, err)
		}
	}
}

// A caller that leaves takes nothing back: what changes something is carried out.
func TestWhatWasReceivedIsCarriedOut(t *testing.T) {
	r := newRig(t, Options{})
	r.SetLatency("createPod", time.Millisecond)
	r.SetLatency("listPods", time.Millisecond)
	left, leave := context.WithCancel(t.Context())
	leave()
	ask := func(method, body string) (broken any) {
		req := httptest.NewRequestWithContext(left, method, "/v2/pods", strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+r.key)
		req.Header.Set("Content-Type", "application/json")
		defer func() { broken = recover() }()
		r.ServeHTTP(httptest.NewRecorder(), req)
		return nil
	}
	if broken := ask("POST", `{"name":"a","image":"i:1","gpu":{"id":"NVIDIA L4"}}`); broken != nil {
		t.Errorf("the create: %v", broken)
	}
	if broken, _ := ask("GET", "").(error); !errors.Is(broken, http.ErrAbortHandler) {
		t.Errorf("the list: %v, want that it is broken off", broken)
	}
	r.SetLatency("listPods", 0)
	if a := r.want(200, "GET", "/v2/pods", ""); !strings.Contains(a.raw, `"name":"a"`) {
		t.Errorf("pods %s, want the one that was made", a.raw)
	}
}
