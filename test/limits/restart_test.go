package limits

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// TestManyKeysSurviveARestart restarts a Redis without persistence under more keys
// of one organisation than a part of the gateway's memory would hold: the gateway
// remembers all of them, and none gets its quota a second time.
func TestManyKeysSurviveARestart(t *testing.T) {
	const keys, callers = 2500, 16
	limits := make([]string, keys)
	for i := range limits {
		limits[i] = fmt.Sprintf("k%d {day: 1}", i)
	}
	f := newFleet(t, "exact", 1, limits...)
	round := func() (admitted int64) {
		var n atomic.Int64
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for i := c; i < keys; i += callers {
					a := f.ask(t, 0, fmt.Sprintf("k%d", i))
					for a.Status == http.StatusServiceUnavailable { // until the counts are restored
						a = f.ask(t, 0, fmt.Sprintf("k%d", i))
					}
					if a.Status == http.StatusOK {
						n.Add(1)
					}
				}
			})
		}
		wg.Wait()
		return n.Load()
	}
	if got := round(); got != keys {
		t.Fatalf("%d calls of %d keys with a quota of one were answered, want all", got, keys)
	}
	f.server.Restart()
	if got := round(); got != 0 {
		t.Errorf("%d calls were answered again after Redis restarted, want none", got)
	}
}
