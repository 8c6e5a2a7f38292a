package envoy

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// The file as it is shipped is one Envoy takes, down to every certificate.
func TestTheShippedBootstrapIsValid(t *testing.T) {
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err != nil {
		t.Skip("this machine keeps its root certificates elsewhere")
	}
	cmd := exec.CommandContext(t.Context(), program(t), "-c", "../../deploy/envoy.yaml", "--mode", "validate", "--log-level", "warn")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "OK") {
		t.Errorf("envoy --mode validate: %v\n%s", err, out)
	}
	for _, word := range []string{"deprecated", "warning"} {
		if strings.Contains(strings.ToLower(string(out)), word) {
			t.Errorf("envoy has something to say:\n%s", out)
		}
	}
}

// mode returns the processing mode of the bootstrap's filter.
func mode(t *testing.T, b *bootstrap) map[string]any {
	t.Helper()
	m, ok := b.filter()["processing_mode"].(map[string]any)
	if !ok {
		t.Fatal("the filter has no processing_mode")
	}
	return m
}

// perRoute gives the routes to the platform a processing mode of their own.
func perRoute(t *testing.T, b *bootstrap, mode node) {
	t.Helper()
	for _, r := range b.routes() {
		route, ok := r.(map[string]any)
		if !ok {
			t.Fatalf("a route is %T", r)
		}
		route["typed_per_filter_config"] = node{"envoy.filters.http.ext_proc": node{
			"@type":     "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute",
			"overrides": node{"processing_mode": mode},
		}}
	}
}

// allowed is an entry of allowed_override_modes as Envoy compares it.
func allowed(response string) node {
	return node{
		"response_header_mode": "SEND", "request_body_mode": "BUFFERED", "response_body_mode": response,
		"request_trailer_mode": "SKIP", "response_trailer_mode": "SKIP",
	}
}

// A filter set up in another way than the bootstrap's: what still works, and
// how the rest fails.
func TestOtherSettings(t *testing.T) {
	requests := []string{
		request("GET", "/v2/catalog/gpus/NVIDIA%20L4", "key_research", ""),
		request("POST", "/v2/pods", "key_research", pod4090),
		request("POST", "/v2/pods", "key_research", world.Chunked(podH100), "Transfer-Encoding: chunked"),
		request("GET", "/v2/pods/nope1234", "key_research", ""),
	}
	works, closed := []int{200, 201, 403, 404}, []int{503, 503, 503, 503}
	for _, tc := range []struct {
		name  string
		shape func(t *testing.T, b *bootstrap)
		want  []int
	}{
		{"as shipped", func(*testing.T, *bootstrap) {}, works},
		{"request bodies not sent", func(t *testing.T, b *bootstrap) { mode(t, b)["request_body_mode"] = "NONE" }, closed},
		{"request bodies streamed", func(t *testing.T, b *bootstrap) { mode(t, b)["request_body_mode"] = "STREAMED" }, closed},
		{"request bodies sent in part", func(t *testing.T, b *bootstrap) { mode(t, b)["request_body_mode"] = "BUFFERED_PARTIAL" }, closed},
		{"response bodies held", func(t *testing.T, b *bootstrap) { mode(t, b)["response_body_mode"] = "BUFFERED" }, closed},
		{"response bodies streamed", func(t *testing.T, b *bootstrap) { mode(t, b)["response_body_mode"] = "STREAMED" }, closed},
		{"per route, request bodies not sent", func(t *testing.T, b *bootstrap) { perRoute(t, b, node{"request_body_mode": "NONE"}) }, closed},
		{"per route, request bodies streamed", func(t *testing.T, b *bootstrap) { perRoute(t, b, node{"request_body_mode": "STREAMED"}) }, closed},
		{"per route, request bodies sent in part", func(t *testing.T, b *bootstrap) { perRoute(t, b, node{"request_body_mode": "BUFFERED_PARTIAL"}) }, closed},
		{"our mode overrides allowed by name", func(_ *testing.T, b *bootstrap) {
			b.filter()["allowed_override_modes"] = []any{allowed("BUFFERED_PARTIAL")}
		}, works},
		{"no address", func(_ *testing.T, b *bootstrap) { delete(b.filter(), "request_attributes") }, closed},
		{"no details", func(_ *testing.T, b *bootstrap) { delete(b.filter(), "response_attributes") }, works},
		{"Envoy's headers not to be touched", func(_ *testing.T, b *bootstrap) { b.filter()["mutation_rules"] = node{"disallow_is_error": true} }, closed},
		{"response trailers sent", func(t *testing.T, b *bootstrap) { mode(t, b)["response_trailer_mode"] = "SEND" }, works},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := open(t, shaped(func(b *bootstrap) { tc.shape(t, b) }))
			var got []int
			for _, raw := range requests {
				got = append(got, w.send(t, raw).Status)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			calls := w.platform.Calls()
			checkCalls(t, calls)
			if slices.Equal(tc.want, closed) && len(calls) > 0 {
				t.Errorf("requests reached the platform: %+v", calls)
			}
		})
	}
}

// Settings that the ext_proc server cannot see and cannot make up for. These tests hold
// docs/envoy.md to its account of them.
func TestSettingsThatOpenTheDoor(t *testing.T) {
	t.Run("observability mode", func(t *testing.T) {
		w := open(t, shaped(func(b *bootstrap) { b.filter()["observability_mode"] = true }))
		calls := w.sent(func() { w.send(t, request("POST", "/v2/pods", "key_research", podH100)) })
		// Whether the refusal comes in time to stop the request is a matter of luck.
		if len(calls) > 0 && calls[0].Header.Get("Authorization") != "Bearer key_research" {
			t.Errorf("calls = %+v, want the caller's own request if any", calls)
		}
		// The answer does not wait for the processor in this mode, so its event
		// may come later.
		late := time.After(2 * time.Minute)
		for !slices.ContainsFunc(w.logs.Exchanges(t), func(e map[string]any) bool { return strings.Contains(fmt.Sprint(e), "observability_mode") }) {
			select {
			case <-late:
				t.Fatal("no event says why")
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	t.Run("request headers not sent", func(t *testing.T) {
		w := open(t, shaped(func(b *bootstrap) { mode(t, b)["request_header_mode"] = "SKIP" }))
		var a answer
		calls := w.sent(func() { a = w.send(t, request("GET", "/v2/pods", "key_research", "")) })
		if len(calls) != 1 || calls[0].Header.Get("Authorization") != "Bearer key_research" {
			t.Errorf("calls = %+v, want the caller's own request, forwarded", calls)
		}
		if a.Status != 503 {
			t.Errorf("status = %d, want 503: nobody notices otherwise", a.Status)
		}
	})
	t.Run("response headers not sent", func(t *testing.T) {
		w := open(t, shaped(func(b *bootstrap) { mode(t, b)["response_header_mode"] = "SKIP" }))
		a := w.send(t, request("GET", "/v2/pods/nope1234", "key_research", ""))
		if a.Status != 404 || a.Header.Get("X-Tollgate-Decision") != "" {
			t.Errorf("answer = %d %v, want the platform's, untouched", a.Status, a.Header)
		}
	})
	t.Run("no attribute for whose answer it is", func(t *testing.T) {
		w := open(t, shaped(func(b *bootstrap) { delete(b.filter(), "response_attributes") }))
		w.platform.AddFault(platform.Fault{Kind: platform.FaultDrop, Operation: "getGpuType"})
		a := w.send(t, request("GET", "/v2/catalog/gpus/NVIDIA%20L4", "key_research", ""))
		if a.Status != 503 || !strings.Contains(a.Body, "the platform gave no reason") {
			t.Errorf("answer = %d %s, want Envoy's own, told as the platform's", a.Status, a.Body)
		}
	})
	t.Run("mode override not allowed", func(t *testing.T) {
		w := open(t, shaped(func(b *bootstrap) { delete(b.filter(), "allow_mode_override") }))
		a := w.send(t, request("GET", "/v2/pods/nope1234", "key_research", ""))
		want := http.Header{"Content-Length": a.Header["Content-Length"], "Date": a.Header["Date"]}
		if diff := cmp.Diff(want, a.Header); a.Status != 404 || diff != "" {
			t.Errorf("answer = %d %s, headers (-want +got):\n%s", a.Status, a.Body, diff)
		}
		// Requests are judged all the same.
		var refused answer
		calls := w.sent(func() { refused = w.send(t, request("POST", "/v2/pods", "key_research", podH100)) })
		if refused.Status != 403 || len(calls) > 0 {
			t.Errorf("answer = %d %s, calls %+v", refused.Status, refused.Body, calls)
		}
	})
}
