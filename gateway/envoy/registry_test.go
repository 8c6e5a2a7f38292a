package envoy_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/envoy"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// The registry has the gateways that lately said that they are ready.
func TestRegistry(t *testing.T) {
	store := miniredis.RunT(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	store.SetTime(now)
	client := redistest.Client(t, store.Addr())
	r := envoy.Registry{Client: client, Key: "tollgate:envoy:gateways"}
	one, two := gateway("10.0.0.1"), gateway("10.0.0.2")
	for i, step := range []struct {
		after time.Duration
		self  envoy.Gateway
		ready bool
		want  []envoy.Gateway
	}{
		{0, one, false, nil},
		{0, one, true, []envoy.Gateway{one}},
		{time.Second, two, true, []envoy.Gateway{one, two}},
		{0, one, false, []envoy.Gateway{two}},
		{0, one, true, []envoy.Gateway{one, two}},
		{4 * time.Second, one, true, []envoy.Gateway{one, two}},
		{2 * time.Second, one, true, []envoy.Gateway{one}}, // the other has said nothing for 6 s
	} {
		now = now.Add(step.after)
		store.SetTime(now)
		say := r.Leave
		if step.ready {
			say = r.Join
		}
		got, err := say(t.Context(), step.self)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got, cmp.Comparer(func(a, b envoy.Gateway) bool { return a == b })); diff != "" {
			t.Errorf("step %d: gateways (-want +got):\n%s", i, diff)
		}
	}
	store.Close()
	if _, err := r.Join(t.Context(), one); err == nil {
		t.Error("a registry that is away gives no error")
	}
}

// Gateways hear of each other's Envoys, of one that says nothing more for five seconds.
func TestRegistryShares(t *testing.T) {
	store := miniredis.RunT(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	client := redistest.Client(t, store.Addr())
	r := envoy.Registry{Client: client, Reports: "tollgate:envoy:nodes"}
	one, two := gateway("10.0.0.1"), gateway("10.0.0.2")
	has := func(n int64) envoy.Report { return envoy.Report{Nodes: map[string]int64{"edge": n}} }
	for i, step := range []struct {
		after time.Duration
		self  envoy.Gateway
		own   envoy.Report
		want  []envoy.Report
	}{
		{0, one, has(1), nil},
		{time.Second, two, has(2), []envoy.Report{has(1)}},
		{time.Second, one, has(3), []envoy.Report{has(2)}},
		{4 * time.Second, two, has(4), []envoy.Report{has(3)}},
		{5 * time.Second, two, has(5), nil},
	} {
		now = now.Add(step.after)
		store.SetTime(now)
		got, err := r.Share(t.Context(), step.self, step.own)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d: reports (-want +got):\n%s", i, diff)
		}
	}
	if fields, err := client.HKeys(t.Context(), r.Reports).Result(); err != nil || len(fields) != 1 {
		t.Errorf("fields = %q, %v, want that of the second gateway", fields, err)
	}
}
