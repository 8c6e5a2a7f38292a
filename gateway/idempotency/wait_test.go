package idempotency

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// A repeat makes its own resource beside a waiting one after eight looks, and never with an Idempotency-Key.
func TestWaitingCallersAreOthersAfterEightLooks(t *testing.T) {
	a, _, w := desks(redistest.Away(t))
	defer a.Enter(t.Context(), w, "1")()
	f := &Deduplicator{Tracker: a}
	for _, tt := range []struct {
		glances int
		keyed   bool
		want    []string
	}{
		{0, false, []string{"0"}},
		{1, false, []string{"0"}},
		{7, false, []string{"0"}},
		{8, false, []string{"0", "1"}},
		{9, false, []string{"0", "1"}},
		{9, true, []string{"0"}},
	} {
		got := f.separate(&filter.IdempotencyState{Keys: *w, Separate: []string{"0"}, Polls: tt.glances, HasKey: tt.keyed})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("after %d looks, keyed %t (-want +got):\n%s", tt.glances, tt.keyed, diff)
		}
	}
}
