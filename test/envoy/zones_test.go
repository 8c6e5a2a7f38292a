package envoy

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/world"
)

// Envoys ask gateways of their zone, and others when those are gone; the members of a
// patch are in the listener that they have.
func TestZonesAndPatches(t *testing.T) {
	t.Parallel()
	in := func(zone string) string {
		text := strings.Replace(groups, "  xds:\n", "  xds:\n    zone: "+zone+"\n", 1)
		return patient(configuration) + strings.Replace(text, `{id: edge, `, `{id: edge, zone: near, merge: {listeners: {callers: {tcp_backlog_size: 77}}}, `, 1)
	}
	f := newFleet(t, in("near"))
	near := f.run(t, nil)
	f.cfg = f.configuration(t, in("far"))
	far := f.run(t, nil)
	w := &way{platform: f.platform, process: start(t, bootstrapOf(t, edge, near.door, far.door))}
	w.settle(t)
	healthy := func(m *member) bool {
		return strings.Contains(w.ask(t, "/clusters"), "::"+m.data.String()+"::health_flags::healthy")
	}
	world.Until(t, "both gateways are healthy", func() bool { return healthy(near) && healthy(far) })
	ask := func(n int) {
		t.Helper()
		for range n {
			if got := w.send(t, request("GET", "/v2/pods", "key_research", "")); got.Status != 200 {
				t.Fatalf("status = %d, want 200: %s", got.Status, got.Body)
			}
		}
	}
	exchanges := func(m *member) int { return strings.Count(m.logs.String(), `"operation":"listPods"`) }
	before := exchanges(far)
	ask(20)
	world.Until(t, "all is recorded", func() bool { return exchanges(near) >= 20 })
	if got := exchanges(far); got != before {
		t.Errorf("the gateway of another zone was asked %d times, want never", got-before)
	}
	if text := w.ask(t, "/config_dump?resource=dynamic_listeners"); !strings.Contains(text, `"tcp_backlog_size": 77`) {
		t.Error("the listener has no backlog of 77")
	}
	near.end()
	world.Until(t, "the gateway of the zone has left", func() bool { return !strings.Contains(w.ask(t, "/clusters"), "::"+near.data.String()+"::") })
	ask(5)
	world.Until(t, "the other is asked", func() bool { return exchanges(far) >= before+5 })
}
