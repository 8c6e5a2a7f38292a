package envoy_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// Gateways hear which of them are ready, and of each other's Envoys, but not of one that says nothing more for five seconds.
func TestBeat(t *testing.T) {
	server := miniredis.RunT(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	registry := &store.Registry{Client: redistest.Client(t, server.Addr()), Key: "gateways", TTL: 5 * time.Second}
	one, two := gateway("10.0.0.1"), gateway("10.0.0.2")
	has := func(n int64) envoy.Report { return envoy.Report{Nodes: map[string]int64{"edge": n}} }
	for i, step := range []struct {
		after  time.Duration
		self   envoy.Gateway
		own    envoy.Heartbeat
		ready  []envoy.Gateway
		others []envoy.Report
	}{
		{0, one, envoy.Heartbeat{Report: has(1)}, nil, nil},
		{0, one, envoy.Heartbeat{Ready: true, Report: has(2)}, []envoy.Gateway{one}, nil},
		{time.Second, two, envoy.Heartbeat{Ready: true, Report: has(3)}, []envoy.Gateway{one, two}, []envoy.Report{has(2)}},
		{0, one, envoy.Heartbeat{Report: has(4)}, []envoy.Gateway{two}, []envoy.Report{has(3)}},
		{4 * time.Second, one, envoy.Heartbeat{Ready: true, Report: has(5)}, []envoy.Gateway{one, two}, []envoy.Report{has(3)}},
		{2 * time.Second, one, envoy.Heartbeat{Ready: true, Report: has(6)}, []envoy.Gateway{one}, nil}, // the other has said nothing for 6 s
	} {
		now = now.Add(step.after)
		server.SetTime(now)
		ready, others, err := envoy.SendHeartbeat(t.Context(), registry, step.self, step.own)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.ready, ready, cmp.Comparer(func(a, b envoy.Gateway) bool { return a == b })); diff != "" {
			t.Errorf("step %d: gateways (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(step.others, others); diff != "" {
			t.Errorf("step %d: reports (-want +got):\n%s", i, diff)
		}
	}
	server.Close()
	if _, _, err := envoy.SendHeartbeat(t.Context(), registry, one, envoy.Heartbeat{}); err == nil {
		t.Error("a registry that is away gives no error")
	}
}
