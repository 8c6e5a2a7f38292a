package idempotency

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// A found resource is noted on the call that got it; see also package filter.
func TestFoundResources(t *testing.T) {
	given := &filter.Exchange{Adopted: "p1", Event: &telemetry.Event{}}
	if got, want := new(Deduplicate).Notes(given, stageIdempotency), []string{"p1 was created by an earlier request whose response was lost"}; !cmp.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
}
