package parity

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// receiver is an OTLP receiver that keeps all it gets.
func receiver(t *testing.T) (url string, got *world.Buffer) {
	t.Helper()
	got = new(world.Buffer)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(got, r.Body)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// searchAll fails if the canary is in anything the gateway put out.
func searchAll(t *testing.T, d *door, answers []string, traces *world.Buffer) {
	t.Helper()
	if err := d.providers.Shutdown(t.Context()); err != nil { // flushes the traces
		t.Errorf("flush: %v", err)
	}
	places := map[string]string{
		"logs": d.logs.String(), "traces": traces.String(), "metrics": d.page(t, "/metrics"),
		"status": d.page(t, "/admin/status"), "goroutines": d.page(t, "/debug/pprof/goroutine?debug=2"),
	}
	for i, a := range answers {
		places[fmt.Sprintf("answer %d", i)] = a
	}
	for place, text := range places {
		if text == "" {
			t.Errorf("nothing in %s: the search proves nothing", place)
		}
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("the platform key is in %s: ...%s...", place, text[max(0, i-200):min(len(text), i+40)])
		}
		for _, key := range []string{"key_research\"}", "Bearer key_"} {
			if strings.Contains(text, key) {
				t.Errorf("a caller's key is in %s", place)
			}
		}
	}
}

func flat(a answer) string { return fmt.Sprint(a.Status, a.Header, a.Body) }

// Every case of the table, and every way the platform can fail, in one
// gateway; then everything it put out is searched.
func TestThePlatformKeyStaysInside(t *testing.T) {
	t.Parallel()
	url, traces := receiver(t)
	eachDoor(t, func(t *testing.T, d *door) {
		var answers []string
		for _, c := range table() {
			if c.door == "" || c.door == d.name {
				answers = append(answers, flat(d.ask(t, c.request)))
			}
		}
		for _, kind := range []platform.FaultKind{
			platform.FaultCapacity, platform.FaultBalance, platform.FaultForbidden, platform.FaultRateLimit, platform.FaultStatus,
		} {
			d.platform.AddFault(platform.Fault{Kind: kind, Operation: "listPods", Times: 1})
			answers = append(answers, flat(d.ask(t, request("GET", "/v2/pods", "key_exempt", ""))))
		}
		searchAll(t, d, answers, traces)
	}, func(d *door) {
		d.text = strings.Replace(configuration, "log:", "telemetry: {sample_ratio: 1, otlp: {endpoint: \""+url+"\"}}\nlog:", 1)
	})
}

// A platform that repeats the request it got in its errors.
func TestAnEchoingPlatformCannotGiveTheKeyAway(t *testing.T) {
	t.Parallel()
	url, traces := receiver(t)
	var mode atomic.Value
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		switch mode.Load() {
		case "problem":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"title":%q,"status":400,"detail":"you sent %s","errors":["$: %s"],"account":%q}`, auth, auth, auth, auth)
		case "text":
			w.Header().Set("X-Echo", auth)
			http.Error(w, auth, http.StatusInternalServerError)
		case "redirect":
			http.Redirect(w, r, "http://127.0.0.1:1/?key="+auth, http.StatusTemporaryRedirect)
		case "header":
			w.Header().Set("X-Echo", auth)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"pods":[]}`)
		case "unauthorized":
			w.Header().Set("WWW-Authenticate", auth)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer echo.Close()
	want := map[string]int{"problem": 400, "text": 500, "redirect": 502, "header": 200, "unauthorized": 502}
	eachDoor(t, func(t *testing.T, d *door) {
		var answers []string
		for m, status := range want {
			mode.Store(m)
			for _, target := range []string{"/v2/pods", "/v1/pods"} {
				a := d.ask(t, request("GET", target, "key_exempt", ""))
				answers = append(answers, flat(a))
				if target == "/v2/pods" && a.Status != status {
					t.Errorf("%s: status = %d, want %d: %s", m, a.Status, status, a.Body)
				}
			}
		}
		searchAll(t, d, answers, traces)
	}, func(d *door) {
		d.upstream = echo.URL
		d.text = strings.Replace(configuration, "log:", "telemetry: {sample_ratio: 1, otlp: {endpoint: \""+url+"\"}}\nv1: {budget: 1s, volume_budget: 1s}\nlog:", 1)
	})
}
