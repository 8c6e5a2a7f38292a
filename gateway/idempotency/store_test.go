package idempotency_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/idempotency"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
)

// A resource belongs to the call that claimed it first, which may claim it again, or
// to the one that another store has written by its mark.
func TestClaim(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s := idempotency.New(r.Client, "t:")
		key, value := s.Mark("acme", "pod/p3", "c")
		if err := r.Client.Set(t.Context(), key, value, idempotency.Keep).Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // those who come later change nothing
			if err := s.ClaimAll(t.Context(), []idempotency.Made{{"acme", "pod/p4", "a"}, {"acme", "pod/p4", "b"}, {"acme", "pod/p3", "b"}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct {
			resource, call string
			want           bool
		}{
			{"pod/p1", "a", true},
			{"pod/p1", "b", false},
			{"pod/p1", "a", true},
			{"pod/p2", "b", true},
			{"pod/p3", "a", false},
			{"pod/p3", "c", true},
			{"pod/p4", "b", false},
			{"pod/p4", "a", true},
		} {
			if got, err := s.Claim(t.Context(), "acme", tt.resource, tt.call); got != tt.want || err != nil {
				t.Errorf("Claim(%s, %s) = %v, %v, want %v", tt.resource, tt.call, got, err, tt.want)
			}
		}
	})
}
