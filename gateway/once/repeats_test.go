package once

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// A found resource is noted on the call that got it; see also package filter.
func TestFoundResources(t *testing.T) {
	given := &filter.Exchange{Adopted: "p1", Event: &telemetry.Event{}}
	if got, want := new(Repeats).Notes(given, stageOnce), []string{"p1 was made by an earlier request whose answer was lost"}; !cmp.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
}

// Word that a caller has left may arrive behind the platform's answer.
func TestLeftAMomentLater(t *testing.T) {
	for end, want := range map[time.Duration]bool{0: true, moment / 2: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), end)
			defer cancel()
			if got := left(ctx); got != want {
				t.Errorf("a caller that leaves after %v has left: %t, want %t", end, got, want)
			}
		})
	}
}
