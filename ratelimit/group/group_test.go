package group_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/ratelimit/group"
)

// Who rides travels with the next exchange of others, or alone when its patience ends, or
// with the first flight that is free after that.
func TestRide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards made
		var made [][]string
		g := group.New(1, 8, func(_ context.Context, calls []*string) {
			mu.Lock()
			var names []string
			for _, c := range calls {
				names = append(names, *c)
			}
			made = append(made, names)
			mu.Unlock()
			if slices.Contains(names, "slow") {
				time.Sleep(time.Second)
			}
		})
		const patience = 20 * time.Millisecond
		took := make(map[string]time.Duration)
		var riders sync.WaitGroup
		ride := func(call string) {
			begin := time.Now()
			riders.Go(func() {
				g.Ride(t.Context(), "", &call, patience)
				mu.Lock()
				defer mu.Unlock()
				took[call] = time.Since(begin)
			})
			synctest.Wait()
		}
		do := func(call string) { g.Do(t.Context(), "", &call) }

		ride("with others")
		do("at once")
		riders.Wait()
		ride("alone")
		riders.Wait()
		riders.Go(func() { do("slow") })
		synctest.Wait()
		ride("behind")
		riders.Wait()
		if diff := cmp.Diff([][]string{{"with others", "at once"}, {"alone"}, {"slow"}, {"behind"}}, made); diff != "" {
			t.Errorf("exchanges (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]time.Duration{"with others": 0, "alone": patience, "behind": time.Second}, took); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
		if n := g.Queued(); n != 0 {
			t.Errorf("%d calls are left", n)
		}
	})
}
