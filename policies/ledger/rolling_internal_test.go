package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The end of a resource that is found late leaves in each hour exactly what the resource cost until then.
func TestLateEndsLeaveExactHours(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		rate, began := random.Int64N(5_000_000)+1, 10*hour+random.Int64N(hour)
		ended := began + random.Int64N(3*hour)
		got, want := make(map[int64]int64), make(map[int64]int64)
		add := func(sums map[int64]int64, list []Rollup) {
			for _, r := range list {
				if sums[r.Start.UnixMilli()] += r.Micro; sums[r.Start.UnixMilli()] == 0 {
					delete(sums, r.Start.UnixMilli())
				}
			}
		}
		exact := running{steps: []step{{began, rate}}}
		add(want, exact.accrue(ended))
		s := running{Series: Series{Rate: rate, At: began}}
		for until := began; until < ended; {
			until += random.Int64N(hour) + 1
			s.steps = []step{{s.At, rate}}
			add(got, s.accrue(until))
			s.At = until
		}
		add(got, s.late(&Change{Rate: -rate, At: time.UnixMilli(ended)}))
		if diff := cmp.Diff(want, got); diff != "" || s.Carry != exact.Carry {
			t.Fatalf("%d micro-dollars per hour from %d to %d, rolled up to %d: the hours differ (-want +got):\n%s; carry %d, want %d",
				rate, began, ended, s.At, diff, s.Carry, exact.Carry)
		}
	}
}
