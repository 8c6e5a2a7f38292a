package decisions_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// Counts add up by hour, and are of one organisation.
func TestCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s, hour := decisions.NewCountStore(r.Client, "t:"), time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
		denied, later := decisions.CountKey{Hour: hour, Policy: "gpu_count", Verdict: "denies", Team: "research"}, decisions.CountKey{Hour: hour.Add(time.Hour), Policy: "gpu_count", Verdict: "would deny"}
		for org, counts := range map[string][]map[decisions.CountKey]int64{
			"acme": {{denied: 2, later: 1}, {denied: 3}}, "globex": {{denied: 9}},
		} {
			for _, c := range counts {
				if err := s.Add(t.Context(), org, c); err != nil {
					t.Fatal(err)
				}
			}
		}
		of := func(s decisions.CountKey, calls int64) decisions.PolicyCount {
			return decisions.PolicyCount{Hour: s.Hour, Policy: s.Policy, Verdict: s.Verdict, Team: s.Team, Calls: calls}
		}
		for to, want := range map[time.Time][]decisions.PolicyCount{
			hour.Add(59 * time.Minute): {of(denied, 5)}, hour.Add(200 * time.Hour): {of(denied, 5), of(later, 1)}, hour.Add(-time.Hour): nil,
		} {
			got, err := s.List(t.Context(), "acme", hour.Add(-100*time.Hour), to)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("to %s: %v (-want +got):\n%s", to, err, diff)
			}
		}
		keys, err := r.Client.Keys(t.Context(), "t:*").Result()
		if err != nil || len(keys) != 3 {
			t.Fatalf("keys %v (%v)", keys, err)
		}
		for _, key := range keys {
			if left := r.Client.TTL(t.Context(), key).Val(); left <= 29*24*time.Hour || left > 31*24*time.Hour {
				t.Errorf("%q lasts %s", key, left)
			}
		}
		_ = r.Client.Close()
		if _, err := s.List(t.Context(), "acme", hour, hour); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("away: %v", err)
		}
	})
}
