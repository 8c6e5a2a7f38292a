package parity

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tollgate-dev/tollgate/test/otlptest"
)

// traced exports all traces to a receiver, and gives settings of trace contexts.
func traced(r *otlptest.Receiver, context string) option {
	return func(d *door) {
		d.text = fmt.Sprintf("telemetry: {sample_ratio: 1, otlp: {endpoint: %q}, context: %s}\n", r.URL, context) + d.text
	}
}

// contexts are the trace contexts that the platform has seen.
type contexts struct {
	mu   sync.Mutex // guards seen
	seen []string
}

// overheard puts a proxy before the platform that keeps trace contexts.
func (c *contexts) overheard(t *testing.T) option {
	return func(d *door) {
		to, err := url.Parse(d.platform.URL)
		if err != nil {
			t.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.mu.Lock()
			c.seen = append(c.seen, r.Header.Get("Traceparent"))
			c.mu.Unlock()
			proxy.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		d.upstream = s.URL
	}
}

// A caller's trace context is the parent of an exchange's span where it is trusted, and
// linked where it is not; the platform gets ours where it is to, and never the caller's.
func TestTraceContexts(t *testing.T) {
	const callers, id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, tt := range []struct {
		name, context  string
		parent, passed bool
	}{
		{"untrusted", "{}", false, false},
		{"of elsewhere", "{trusted: [10.0.0.0/8], propagate: true}", false, true},
		{"trusted", "{trusted: [127.0.0.0/8]}", true, false},
		{"trusted and passed on", "{trusted: [10.0.0.0/8, 127.0.0.0/8], propagate: true}", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, name := range []string{"http", "envoy"} {
				r, platform := otlptest.RunT(t), new(contexts)
				d := openDoor(t, name, traced(r, tt.context), platform.overheard(t))
				if a := d.ask(t, request("GET", "/v2/pods", "key_research", "", "Traceparent: 00-"+callers+"-"+id+"-01")); a.Status != 200 {
					t.Fatalf("%d %s", a.Status, a.Body)
				}
				if err := d.providers.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				spans := r.Spans()
				i := slices.IndexFunc(spans, func(s *tracepb.Span) bool { return s.Kind == tracepb.Span_SPAN_KIND_SERVER })
				if i < 0 {
					t.Fatalf("%s: %d spans, and none of an exchange", name, len(spans))
				}
				exchange := spans[i]
				parent, linked := hex.EncodeToString(exchange.ParentSpanId) == id, len(exchange.Links) == 1 && hex.EncodeToString(exchange.Links[0].SpanId) == id
				if parent != tt.parent || linked == tt.parent || (hex.EncodeToString(exchange.TraceId) == callers) != tt.parent {
					t.Errorf("%s: parent %t, linked %t in trace %x; want parent %t", name, parent, linked, exchange.TraceId, tt.parent)
				}
				for _, s := range spans {
					if string(s.TraceId) != string(exchange.TraceId) {
						t.Errorf("%s: span %s is of another trace", name, s.Name)
					}
				}
				if passed := platform.passes(t, exchange.TraceId); passed != tt.passed {
					t.Errorf("%s: the platform got our context: %t, want %t: %q", name, passed, tt.passed, platform.seen)
				}
			}
		})
	}
}

// passes reports whether the platform saw contexts, all of them of a trace.
func (c *contexts) passes(t *testing.T, id []byte) bool {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	prefix, n := "00-"+hex.EncodeToString(id)+"-", 0
	for _, s := range c.seen {
		if strings.HasPrefix(s, prefix) {
			n++
		} else if s != "" {
			t.Errorf("the platform got %s, which is not of trace %x", s, id)
		}
	}
	if n != 0 && n != len(c.seen) {
		t.Errorf("%d of %d calls to the platform have our context", n, len(c.seen))
	}
	return len(c.seen) > 0 && n == len(c.seen)
}

// Each call outside has a span in that of the exchange: those to Redis and, but for the
// one that Envoy sends, those to the platform, in the terms of the semantic conventions.
func TestSpansOfCallsOutside(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		r := otlptest.RunT(t)
		traced(r, "{}")(d)
		d.open(t)
		if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != 201 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if err := d.providers.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		var exchange *tracepb.Span
		calls, scripts, counts := 0, 0, 0
		for _, s := range r.Spans() {
			a := otlptest.Attributes(s.Attributes)
			switch {
			case s.Kind == tracepb.Span_SPAN_KIND_SERVER:
				exchange = s
			case s.Name == "dispatch" && s.Kind == tracepb.Span_SPAN_KIND_CLIENT && a["server.address"] == "127.0.0.1" && a["http.request.method"] != "" && a["http.response.status_code"] != "":
				calls++
			case a["db.system.name"] == "redis" && a["db.operation.name"] == "evalsha":
				scripts++
			case s.Name == "rate limit":
				counts++
			}
		}
		if exchange == nil || exchange.Name != "POST createPod" {
			t.Fatalf("the exchange's span is %v", exchange)
		}
		a := otlptest.Attributes(exchange.Attributes)
		if a["http.request.method"] != "POST" || a["http.response.status_code"] != "201" || a["client.address"] == "" || a["tollgate.decision_id"] == "" {
			t.Errorf("the exchange's attributes are %v", a)
		}
		least := 1
		if d.name == "envoy" {
			least = 0 // what is asked of the platform is asked by Envoy
		}
		if calls < least || scripts < 1 || counts != 1 {
			t.Errorf("%d calls of the platform, %d scripts, %d counts; want each", calls, scripts, counts)
		}
	}, budgeted("{per_hour: 3}"))
}
