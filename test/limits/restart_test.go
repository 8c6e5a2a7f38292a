package limits

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// TestAReplicaBehindOpensNothing: a Redis that has lost calls of two gateways, as when
// a replica that was behind is promoted, admits none of them a second time, although
// no connection tells that anything has happened.
func TestAReplicaBehindOpensNothing(t *testing.T) {
	const quota, kept, lost = 40, 12, 24
	// Only Redis admits calls: a gateway that a busy machine keeps from Redis would else admit a part of the quota by itself, of which
	// Redis knows nothing when it loses data.
	f := newFleet(t, "exact, failure: {read: closed}", 2, "ann {day: 40}", "bob {day: 40}")
	f.within(t, 24*time.Hour, [2]string{"ann", "bob"}, func(key string) (wrong []string) {
		admitted := 0
		use := func(calls int) {
			for i := range calls {
				a := f.ask(t, i%2, key)
				for a.Status == http.StatusServiceUnavailable { // Redis answers late on a busy machine
					a = f.ask(t, i%2, key)
				}
				if a.Status == http.StatusOK {
					admitted++
				}
			}
		}
		use(kept)
		mark := f.server.Mark()
		use(lost)
		mark.RollBack()
		for refused := 0; refused < 2*len(f.gateways); {
			switch a := f.ask(t, refused%2, key); a.Status {
			case http.StatusOK:
				admitted++
			case http.StatusTooManyRequests:
				refused++
			case http.StatusServiceUnavailable: // until the counts are restored
			default:
				return []string{fmt.Sprintf("status %d: %s", a.Status, a.Body)}
			}
		}
		// A gateway that a busy machine holds up is taken for lost, and the calls that it may
		// have charged in its last moments are charged: then the rest is refused.
		if admitted > quota || admitted < kept+lost {
			wrong = append(wrong, fmt.Sprintf("%d calls were admitted, want %d", admitted, quota))
		}
		return wrong
	})
}
