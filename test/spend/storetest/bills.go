package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// post corrects an hour of a pod of ann's, and reports whether it was done.
func (h *harness) post(t *ledger.RollupInput, hour time.Time, micro int64) bool {
	h.Helper()
	done, err := h.Store.Post(h.Context(), h.org, &ledger.Posting{
		Version: t.Version, Until: t.Until, Retention: retention,
		Billed: []ledger.Rollup{{Start: hour, Item: ledger.Item{Resource: "p1", Kind: "pod", Owner: ann}, Micro: micro}},
	})
	if err != nil {
		h.Fatalf("Post: %v", err)
	}
	return done
}

// testBilled: a correction is made once, in roll-ups and in accrued costs, and takes off
// no more than there is.
func testBilled(h *harness) {
	h.movable()
	h.roll()
	h.running()
	h.advance(3 * time.Hour)
	h.roll()
	t := h.tally()
	hour := start.Add(time.Hour)
	for i, want := range []bool{true, false} {
		if got := h.post(&t, hour, -0.25*usd); got != want {
			h.Errorf("correction %d was made: %t, want %t", i, got, want)
		}
	}
	h.accrued(2.75*usd, 2.75*usd)
	sum := func() (micro int64) {
		for _, n := range h.cost(ledger.Hourly, hour) {
			micro += n
		}
		return micro
	}
	if got := sum(); got != 0.75*usd {
		h.Errorf("the hour has cost %d, want %d", got, int64(0.75*usd))
	}
	t = h.tally()
	h.post(&t, hour, 0.5*usd)
	h.accrued(3.25*usd, 3.25*usd)
	if diff := cmp.Diff(t.Series, h.tally().Series); diff != "" {
		h.Errorf("series (-want +got):\n%s", diff)
	}
	h.advance(time.Hour)
	h.roll()
	h.accrued(4.25*usd, 4.25*usd)
	t = h.tally()
	h.post(&t, hour, -100*usd)
	h.accrued(0, 0)
}

// testBilledPeriods: a correction accrues in the periods that have the hour, and of an
// hour in which a day begins, as much as is in the day.
func testBilledPeriods(h *harness) {
	h.movable()
	for _, tt := range []struct {
		zone, hour string
		day, month int64
	}{
		{"UTC", "2027-03-14 00:00:00", 4 * usd, 4 * usd},
		{"UTC", "2027-03-13 23:00:00", 0, 4 * usd},
		{"UTC", "2027-02-28 23:00:00", 0, 0},
		{"Asia/Kolkata", "2027-03-13 18:00:00", 2 * usd, 4 * usd},
		{"Asia/Kathmandu", "2027-03-13 18:00:00", 3 * usd, 4 * usd},
		{"Asia/Kathmandu", "2027-02-28 18:00:00", 0, 3 * usd},
	} {
		h.in(tt.zone)
		h.org = tt.zone + tt.hour
		h.set(start)
		h.rebuild()
		h.roll()
		h.reserve(teamPerHour(1), ledger.Amounts{})
		t := h.tally()
		for _, micro := range []int64{5 * usd, -1 * usd} {
			h.post(&t, h.moment(tt.hour), micro)
			t.Version++
		}
		for _, s := range each() {
			if b := h.balance(s); b.Day != tt.day || b.Month != tt.month {
				h.Errorf("%s, %s: %s has %d today and %d this month, want %d and %d", tt.zone, tt.hour, s, b.Day, b.Month, tt.day, tt.month)
			}
		}
	}
}

// statement is a platform's bills, which are asked for.
type statement struct {
	World

	bills []ledger.Bill
	asked int
	err   error
}

// Bills implements ledger.Platform.
func (s *statement) Bills(_ context.Context, _ string, from, to time.Time) ([]ledger.Bill, error) {
	s.asked++
	var out []ledger.Bill
	for _, b := range s.bills {
		if !b.Hour.Before(from) && b.Hour.Before(to) {
			out = append(out, b)
		}
	}
	return out, s.err
}

// charge bills a pod for an hour after the start.
func (s *statement) charge(resource string, kind operation.Kind, hour int, micro int64) {
	s.bills = append(s.bills, ledger.Bill{Resource: resource, Kind: kind, Hour: start.Add(time.Duration(hour) * time.Hour), Micro: micro})
}

// follower follows bills two hours after the end of each hour.
func (h *harness) follower(s *statement) *ledger.Bills {
	return &ledger.Bills{Store: h.Store, Platform: s, Delay: 2 * time.Hour, Retention: retention}
}

func (h *harness) follow(b *ledger.Bills) ledger.Corrections {
	h.Helper()
	h.roll()
	c, err := b.Follow(h.Context(), h.org, h.at)
	if err != nil {
		h.Fatalf("Follow: %v", err)
	}
	return c
}

// forgetful forgets comparisons, like a gateway that dies before it can write them down.
type forgetful struct{ ledger.Store }

var errDied = errors.New("the gateway has died")

func (forgetful) Notice(context.Context, string, string, string) error { return errDied }

// testBillsOnce: an hour is corrected when it has closed, once, however often bills are
// compared and whoever dies meanwhile, and once more if its bill is revised.
func testBillsOnce(h *harness) {
	h.movable()
	h.roll()
	h.running() // a dollar per hour
	s := new(statement)
	for hour := range 40 {
		s.charge("p1", operation.KindPod, hour, 0.4*usd)
	}
	b := h.follower(s)
	h.follow(b) // from 13:00 on
	h.set(start.Add(4*time.Hour - time.Second))
	if got := h.follow(b); got.Hours != 0 || s.asked != 0 {
		h.Errorf("before 13:00 has closed: %+v, and bills were asked for %d times, want nothing", got, s.asked)
	}
	h.set(start.Add(5 * time.Hour)) // 13:00 and 14:00 have closed
	s.err = errDied
	h.roll()
	if _, err := b.Follow(h.Context(), h.org, h.at); !errors.Is(err, errDied) {
		h.Errorf("Follow = %v, want the error of the list", err)
	}
	if got := h.follow(b); got.Hours != 0 || s.asked != 1 {
		h.Errorf("%+v, and bills were asked for %d times, want once: the next time is later", got, s.asked)
	}
	h.accrued(5*usd, 5*usd)
	s.err = nil
	dies := h.follower(s)
	dies.Store = forgetful{dies.Store}
	if c, err := dies.Follow(h.Context(), h.org, h.at); !errors.Is(err, errDied) || c != (ledger.Corrections{Hours: 2, Subtracted: 1.2 * usd}) {
		h.Errorf("Follow = %+v, %v, want two hours corrected and the error", c, err)
	}
	for range 3 { // others repeat it
		if got := h.follow(h.follower(s)); got.Hours != 0 {
			h.Errorf("the repeat has corrected %+v, want nothing", got)
		}
	}
	h.accrued(3.8*usd, 3.8*usd)
	asked := s.asked
	h.follow(h.follower(s))
	if s.asked != asked {
		h.Error("bills were asked for again before another hour has closed")
	}
	s.bills[1].Micro = 0.9 * usd // revised
	h.advance(time.Hour)
	if got, want := h.follow(h.follower(s)), (ledger.Corrections{Hours: 2, Added: 0.5 * usd, Subtracted: 0.6 * usd}); got != want {
		h.Errorf("with a revised bill: %+v, want %+v", got, want)
	}
	h.costs(ledger.Hourly, map[string]int64{
		"14T12 p1 of team research": usd, "14T13 p1 of team research": 0.9 * usd, "14T14 p1 of team research": 0.4 * usd,
		"14T15 p1 of team research": 0.4 * usd, "14T16 p1 of team research": usd,
	}, start, start.Add(time.Hour), start.Add(2*time.Hour), start.Add(3*time.Hour), start.Add(4*time.Hour))
	h.accrued(4.7*usd, 4.7*usd)
	h.set(start.Add(36 * time.Hour)) // nothing is left out, step by step
	hours := 0
	for range 4 {
		hours += h.follow(h.follower(s)).Hours
	}
	if hours != 30 { // from 16:00 on to 21:00 of the next day
		h.Errorf("%d hours were corrected after a day without passes, want 30", hours)
	}
}

// testBillsRace: of gateways that compare the same bills at once, each hour is corrected
// by one.
func testBillsRace(h *harness) {
	h.movable()
	h.roll()
	h.running()
	s := new(statement)
	for hour := range 8 {
		s.charge("p1", operation.KindPod, hour, 0.5*usd)
	}
	h.follow(h.follower(s))
	h.advance(8 * time.Hour)
	h.roll()
	var all sync.WaitGroup
	var mu sync.Mutex
	total := ledger.Corrections{}
	for range 4 {
		b := h.follower(&statement{bills: slices.Clone(s.bills)})
		all.Go(func() {
			c, err := b.Follow(h.Context(), h.org, h.at)
			if err != nil && !errors.Is(err, ledger.ErrUnavailable) {
				h.Errorf("Follow: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			total.Hours, total.Subtracted, total.Added = total.Hours+c.Hours, total.Subtracted+c.Subtracted, total.Added+c.Added
		})
	}
	all.Wait()
	if want := (ledger.Corrections{Hours: 5, Subtracted: 2.5 * usd}); total != want {
		h.Errorf("all have corrected %+v, want %+v", total, want)
	}
	h.accrued(5.5*usd, 5.5*usd)
}

// testBillsUnknown: an uncounted cost is its owner's as far as that is known; owners
// share a bill as they shared the counted cost; and hours without bills stay as they are.
func testBillsUnknown(h *harness) {
	h.movable()
	h.roll()
	enter := func(id, kind string, o ledger.Owner, rate int64) {
		h.settle(ledger.Settlement{Hold: "of " + id, End: ledger.Commit, Kind: kind, Resource: id, Owner: o, Amounts: ledger.Amounts{ledger.Burn: rate}})
	}
	ops := ledger.Owner{Team: "ops"}
	enter("pod", "pod", ann, usd)
	enter("volume", "volume", ann, usd)
	enter("endpoint", "endpoint", ops, 2*usd)
	enter("idle", "endpoint", ops, 2*usd)
	enter("free", "endpoint", ops, 0)
	s := new(statement)
	h.follow(h.follower(s))
	h.advance(90 * time.Minute)
	h.adjust("pod", &ops, ledger.Amounts{ledger.Burn: 3 * usd}) // has cost 0.5 and 1.5 at 14:00
	h.advance(3*time.Hour + 30*time.Minute)
	s.charge("pod", operation.KindPod, 1, 4*usd)
	s.charge("endpoint", operation.KindEndpoint, 1, 0.5*usd)
	s.charge("free", operation.KindEndpoint, 1, 0.25*usd)
	s.charge("stranger", operation.KindPod, 1, 7*usd)
	h.follow(h.follower(s))
	h.costs(ledger.Hourly, map[string]int64{
		"14T13 pod of team research": usd, "14T13 pod of team ops": 3 * usd, // doubled
		"14T13 volume of team research":  usd, // of volumes there are no bills
		"14T13 endpoint of team ops":     0.5 * usd,
		"14T13 idle of team ops":         0,
		"14T13 free of team ops":         0.25 * usd,
		"14T13 stranger of organisation": 7 * usd,
		"14T14 pod of team ops":          3 * usd, // there are no bills at all
		"14T14 volume of team research":  usd,
		"14T14 endpoint of team ops":     2 * usd,
		"14T14 idle of team ops":         2 * usd,
	}, start.Add(time.Hour), start.Add(2*time.Hour))
}
