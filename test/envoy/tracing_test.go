package envoy

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/tollgate-dev/tollgate/test/otlptest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// askFrom sends a request from an address of this machine.
func (w *way) askFrom(t *testing.T, address, raw string) answer {
	t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 0))}
	conn, err := d.DialContext(t.Context(), "tcp", w.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	return world.Read(t, bufio.NewReader(conn), raw)
}

// trace is the spans of one request.
type trace map[string]*tracepb.Span // by span id

// traceOf returns the spans of the request that a decision was made about, once they
// lead from the gateway's to one without a parent among them.
func traceOf(t *testing.T, r *otlptest.Receiver, decision string) (all trace, exchange, root *tracepb.Span) {
	t.Helper()
	world.Until(t, "the spans of "+decision+" have come", func() bool {
		all, exchange = make(trace), nil
		for _, s := range r.Spans() {
			if otlptest.Attributes(s.Attributes)["tollgate.decision_id"] == decision {
				exchange = s
			}
		}
		if exchange == nil {
			return false
		}
		for _, s := range r.Spans() {
			if string(s.TraceId) == string(exchange.TraceId) {
				all[string(s.SpanId)] = s
			}
		}
		for root = exchange; all[string(root.ParentSpanId)] != nil; {
			root = all[string(root.ParentSpanId)]
		}
		return root != exchange && root.Kind == tracepb.Span_SPAN_KIND_SERVER // Envoy's
	})
	return all, exchange, root
}

// A request is one trace, from its caller if that is trusted, over Envoy and the gateway
// to the platform; an untrusted caller neither continues a trace nor decides that there is
// one. No span has a path.
func TestTracesLeadThroughEnvoy(t *testing.T) {
	const callers, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	t.Parallel()
	for _, group := range []string{edge, mesh} {
		t.Run(group, func(t *testing.T) {
			t.Parallel() // an Envoy sends spans every five seconds
			r := otlptest.RunT(t)
			w := newFleet(t, fmt.Sprintf("telemetry: {sample_ratio: 1, otlp: {endpoint: %q, headers: {x-tenant: {env: TOKEN}}}, context: {trusted: [127.0.0.1/32], propagate: true}}\n", r.URL)+
				configuration+strings.Replace(groups, "forwarded_hops: 1", "forwarded_hops: 1, trace_context: true", 1)).way(t, group)
			get := func(address, target, flags string) (decision, platform string) {
				t.Helper()
				calls := w.sent(func() {
					a := w.askFrom(t, address, request("GET", target, "key_research", "", "Traceparent: 00-"+callers+"-"+span+"-"+flags, "X-Request-Id: a", "Connection: close"))
					decision = a.Header.Get("X-Tollgate-Decision")
				})
				if len(calls) > 0 {
					platform = calls[0].Header.Get("Traceparent")
				}
				return decision, platform
			}
			unsampled, _ := get("127.0.0.1", "/v2/pods", "00")
			for address, trusted := range map[string]bool{"127.0.0.1": true, "127.0.0.2": false} {
				decision, platform := get(address, "/v2/pods", "01")
				all, exchange, root := traceOf(t, r, decision)
				if got := hex.EncodeToString(root.TraceId) == callers && hex.EncodeToString(root.ParentSpanId) == span; got != trusted {
					t.Errorf("%s: trace %x below span %x continues the caller's: %t, want %t", address, root.TraceId, root.ParentSpanId, got, trusted)
				}
				if !trusted && len(root.ParentSpanId) > 0 {
					t.Errorf("%s: the first span is below %x, want none above it", address, root.ParentSpanId)
				}
				part := strings.Split(platform, "-")
				if len(part) != 4 || part[1] != hex.EncodeToString(exchange.TraceId) {
					t.Fatalf("%s: the platform got trace context %q, want one of %x", address, platform, exchange.TraceId)
				}
				if id, err := hex.DecodeString(part[2]); err != nil || all[string(id)] == nil {
					t.Errorf("%s: the platform is below span %s, which was not exported", address, part[2])
				}
			}
			decision, _ := get("127.0.0.2", "/graphql?api_key=a-secret&query=%7Bgpu%7D", "01")
			traceOf(t, r, decision)
			for _, s := range r.Spans() {
				if text := s.String(); strings.Contains(text, unsampled) || strings.Contains(text, "a-secret") {
					t.Errorf("a span of a request that its caller does not trace, or with a query: %s", text)
				}
			}
			if got := r.Header().Get("X-Tenant"); got != token {
				t.Errorf("the receiver was shown %q, want the header that is configured", got)
			}
		})
	}
}
