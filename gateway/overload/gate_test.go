package overload

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// gate returns a Gate with ten working slots and twenty in all.
func gate(waiting int) *Gate {
	return New(Config{Working: 10, Open: 20, Waiting: waiting, Wait: time.Second})
}

// enter admits a request as the gateway does.
func (g *Gate) enter(ctx context.Context, org string, p Priority) (*Slot, error) {
	if s, ok := g.TryAcquire(org, p); ok {
		return s, nil
	}
	return g.Acquire(ctx, org, p)
}

// fill admits requests of an organisation and a priority until there is no room.
func fill(t *testing.T, g *Gate, org string, p Priority) []*Slot {
	t.Helper()
	var slots []*Slot
	for {
		g.mu.Lock()
		room := g.hasRoom(g.org(org), p)
		g.mu.Unlock()
		if !room {
			return slots
		}
		s, err := g.enter(t.Context(), org, p)
		if err != nil {
			t.Fatalf("request %d of %s: %v", len(slots), org, err)
		}
		slots = append(slots, s)
	}
}

// admitted notes the order in which waiting requests are admitted. They keep their
// slots.
type admitted struct {
	sync.WaitGroup
	mu    sync.Mutex
	order []string
	errs  map[string]error
}

var verbs = map[string]Priority{"creates": Change, "reads": Read, "deletes": ReducesCost, "stops": ReducesCost}

// wait has a request wait, and returns when it does. Its name is the organisation, what
// it does, and what tells it from others, such as "a creates again".
func (a *admitted) wait(ctx context.Context, g *Gate, name string) {
	words := strings.Fields(name)
	a.Go(func() {
		_, err := g.Acquire(ctx, words[0], verbs[words[1]])
		a.mu.Lock()
		defer a.mu.Unlock()
		if err == nil {
			a.order = append(a.order, name)
			return
		}
		if a.errs == nil {
			a.errs = make(map[string]error)
		}
		a.errs[name] = err
	})
	synctest.Wait()
}

// leave gives slots back, one after the other, so that the order can be seen.
func leave(slots ...*Slot) {
	for _, s := range slots {
		s.Release()
		synctest.Wait()
	}
}

func (a *admitted) expect(t *testing.T, want ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(want, a.order); diff != "" {
		t.Errorf("admitted in the order (-want +got):\n%s", diff)
	}
}

func TestWhatLowersCostFindsRoom(t *testing.T) {
	g := gate(0)
	changes := fill(t, g, "a", Change)
	reads := fill(t, g, "a", Read)
	lower := fill(t, g, "a", ReducesCost)
	got := []int{len(changes), len(reads), len(lower)}
	if diff := cmp.Diff([]int{8, 1, 1}, got); diff != "" {
		t.Errorf("changes, then reads, then what lowers cost (-want +got):\n%s", diff)
	}
	if _, err := g.Acquire(t.Context(), "a", ReducesCost); !errors.Is(err, ErrShed) {
		t.Errorf("one more, without a queue: %v, want %v", err, ErrShed)
	}
	if got := g.Stats().Shed[ReducesCost][queueFull]; got != 1 {
		t.Errorf("shed because the queue is full: %d, want 1", got)
	}
}

func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(100)
		slots := fill(t, g, "a", ReducesCost)
		var got admitted
		for _, name := range []string{"a creates", "a reads", "a reads again", "a deletes", "b creates", "b stops", "c reads"} {
			got.wait(t.Context(), g, name)
		}
		leave(slots...)
		// a has its part until it has given up most of it; the other organisations do
		// not, and of them what lowers cost is first.
		got.expect(t, "b stops", "c reads", "b creates", "a deletes", "a reads", "a reads again", "a creates")
		got.Wait()
	})
}

// Neither many requests nor urgent ones get an organisation more than its part while
// others wait.
func TestAnOrganisationGetsItsPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(1000)
		const service, runs = 10 * time.Millisecond, 3 * time.Second
		done := map[string]int{}
		shed := map[string]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		callers := func(org string, n int, p Priority) {
			for range n {
				all.Go(func() {
					for end := time.Now().Add(runs); time.Now().Before(end); {
						s, err := g.enter(t.Context(), org, p)
						mu.Lock()
						if err != nil {
							shed[org]++
						} else {
							done[org]++
						}
						mu.Unlock()
						if err == nil {
							time.Sleep(service)
							s.Release()
						}
					}
				})
			}
		}
		callers("loud", 300, ReducesCost) // urgent, and thirty times what there is
		callers("large", 30, Read)
		callers("small", 2, Read)
		all.Wait()
		// small needs less than its part, which is a third of ten slots.
		if want := int(2 * runs / service); done["small"] < want*3/4 || shed["small"] > 0 {
			t.Errorf("small had %d requests done and %d shed, want most of %d and none", done["small"], shed["small"], want)
		}
		if done["large"] < done["loud"]*3/4 {
			t.Errorf("large had %d requests done beside %d of loud, which asked ten times as often, and urgently", done["large"], done["loud"])
		}
	})
}

// Under ten times the load that it can bear, a gate admits as much as before, all
// that lowers cost, and nothing that has to wait long; afterwards it is as it was.
func TestTenTimesTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Config{Working: 10, Open: 20, Waiting: 50, Wait: 100 * time.Millisecond})
		const service, load = 10 * time.Millisecond, 2 * time.Second
		const capacity = 9 * int(load/service) // the tenth slot is for what lowers cost
		kinds := []Priority{Read, Change, Read, Change, Read, Change, Read, Change, Read, Read, Change, Read, Change, Read, Change, Read, Change, Read, Change, ReducesCost}
		var mu sync.Mutex
		var done, refused [priorities]int
		var all sync.WaitGroup
		for i := range 10 * capacity {
			time.Sleep(load / time.Duration(10*capacity))
			all.Go(func() {
				p := kinds[i%len(kinds)]
				began := time.Now()
				s, err := g.enter(t.Context(), string(rune('a'+i%7)), p)
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("a request waited for %s", took)
				}
				if err == nil {
					time.Sleep(service)
					s.Release()
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused[p]++
					return
				}
				done[p]++
			})
			if s := g.Stats(); s.Waiting[ReducesCost]+s.Waiting[Read]+s.Waiting[Change] > 50 || s.Open > 20 || s.Working > 10 {
				t.Fatalf("out of bounds: %+v", s)
			}
		}
		s, err := g.Acquire(t.Context(), "a", ReducesCost) // at the height of it
		if err != nil {
			t.Errorf("a stop at the end of the load: %v", err)
		}
		s.Release()
		all.Wait()
		if got := done[ReducesCost] + done[Read] + done[Change]; got < capacity*9/10 {
			t.Errorf("%d requests done, want nine tenths of %d", got, capacity)
		}
		if refused[ReducesCost] > 0 {
			t.Errorf("%d of %d requests that lower cost were refused, want none", refused[ReducesCost], refused[ReducesCost]+done[ReducesCost])
		}
		if s := g.Stats(); s.Open != 0 || s.Working != 0 || len(g.queued) != 0 || g.active != 0 || g.waiting != 0 {
			t.Errorf("afterwards %+v, want nothing", s)
		}
		if _, ok := g.TryAcquire("a", Read); !ok {
			t.Error("the next request had to wait")
		}
	})
}

func TestTheNewestIsFirstWhenTheQueueStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(10)
		slots := fill(t, g, "a", Read)
		var got admitted
		got.wait(t.Context(), g, "a reads first")
		time.Sleep(400 * time.Millisecond)
		got.wait(t.Context(), g, "a reads second")
		got.wait(t.Context(), g, "a reads third")
		leave(slots[0])
		time.Sleep(550 * time.Millisecond) // second has waited for longer than half a second
		got.wait(t.Context(), g, "a reads fourth")
		leave(slots[1])
		time.Sleep(time.Second)
		got.Wait()
		got.expect(t, "a reads first", "a reads fourth")
		if got := g.Stats().Shed[Read][timedOut]; got != 2 {
			t.Errorf("%d were shed because they waited too long, want 2", got)
		}
	})
}

func TestWhoseRequestIsShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(4)
		slots := fill(t, g, "a", ReducesCost)
		var got admitted
		got.wait(t.Context(), g, "b reads")
		got.wait(t.Context(), g, "a creates")
		got.wait(t.Context(), g, "a deletes")
		got.wait(t.Context(), g, "a creates again")
		got.wait(t.Context(), g, "b deletes") // a has most in the queue: its oldest create goes
		got.wait(t.Context(), g, "c reads")   // a and b have as many: a came first
		leave(slots...)
		got.Wait()
		for _, name := range []string{"a creates", "a creates again"} {
			if !errors.Is(got.errs[name], ErrShed) {
				t.Errorf("%s: %v, want %v", name, got.errs[name], ErrShed)
			}
		}
		if len(got.errs) != 2 {
			t.Errorf("shed: %v, want two", got.errs)
		}
	})
}

func TestRestingRequestsLeaveRoom(t *testing.T) {
	g := gate(0)
	slots := fill(t, g, "a", Change)
	for _, s := range slots {
		s.Pause()
		s.Pause() // a request in two parts, and both wait
	}
	if got := g.Stats(); got.Working != 0 || got.Open != 8 {
		t.Fatalf("%d work and %d are open, want 0 and 8", got.Working, got.Open)
	}
	more := fill(t, g, "a", Change)
	if len(more) != 7 { // sixteen of twenty slots are for changes, and the last of them is for another organisation
		t.Errorf("%d more were admitted, want 7", len(more))
	}
	for _, s := range slots {
		s.Resume()
	}
	if got := g.Stats().Working; got != 7 {
		t.Errorf("%d work while each waits once more, want 7", got)
	}
	for _, s := range slots {
		s.Resume() // is not held up, although there is no room
	}
	if got := g.Stats().Working; got != 15 {
		t.Errorf("%d work, want 15", got)
	}
	for _, s := range append(slots, more...) {
		s.Release()
		s.Release()
		s.Pause() // a part that outlives its request
		s.Resume()
	}
	if got := g.Stats(); got.Working != 0 || got.Open != 0 {
		t.Errorf("%d work and %d are open at the end, want none", got.Working, got.Open)
	}
	var none *Slot
	none.Pause()
	none.Resume()
	none.Release()
}

// TestAStalledOrganisationLeavesRoom: an organisation whose requests all wait for a platform that does not respond leaves about a tenth of
// the slots to others at each priority, and slots to its own requests of a higher priority.
func TestAStalledOrganisationLeavesRoom(t *testing.T) {
	for _, open := range []int{64, 200} {
		g := New(Config{Working: 1000, Open: open})
		for _, p := range []Priority{Change, Read, ReducesCost} {
			if stalled := fill(t, g, "a", p); len(stalled) == 0 {
				t.Errorf("%s found no room", p)
			}
			for _, p := range Priorities() {
				others := fill(t, g, "b", p)
				if want := part(open, p) * 8 / 100; len(others) < want {
					t.Errorf("%d of %d slots are left to %s of another organisation, want %d", len(others), open, p, want)
				}
				for _, s := range others {
					s.Release()
				}
			}
		}
	}
}

func TestACallerThatLeavesWaitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(10)
		slots := fill(t, g, "a", ReducesCost)
		ctx, cancel := context.WithCancel(t.Context())
		var got admitted
		got.wait(ctx, g, "a reads gone")
		got.wait(t.Context(), g, "a reads patient")
		cancel()
		synctest.Wait()
		leave(slots...)
		got.Wait()
		got.expect(t, "a reads patient")
		if !errors.Is(got.errs["a reads gone"], context.Canceled) {
			t.Errorf("the one that left: %v, want %v", got.errs["a reads gone"], context.Canceled)
		}
		if got := g.Stats().Shed; got != [priorities][reasons]int64{} {
			t.Errorf("shed %v, want none", got)
		}
	})
}

func TestDefaults(t *testing.T) {
	for _, tc := range []struct {
		name       string
		processors int
		memory     int64
		cfg, want  Config
	}{
		{"no limit", 4, math.MaxInt64, Config{}, Config{Working: 256, Open: 10000}},
		{"a gigabyte", 2, 1 << 30, Config{}, Config{Working: 128, Open: 512}},
		{"very little", 2, 32 << 20, Config{}, Config{Working: 128, Open: 64}},
		{"very much", 2, 1 << 40, Config{}, Config{Working: 128, Open: 10000}},
		{"configured", 2, 1 << 30, Config{Working: 3, Open: 5}, Config{Working: 3, Open: 5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.cfg.withDefaults(tc.processors, tc.memory)); diff != "" {
				t.Errorf("bounds (-want +got):\n%s", diff)
			}
		})
	}
	bad := Config{Working: -1, Open: -1, Waiting: -1, Wait: -1}
	if err := bad.Validate(); err == nil {
		t.Error("negative bounds are no fault")
	}
}

func BenchmarkSlot(b *testing.B) {
	g := gate(0)
	b.ReportAllocs()
	for b.Loop() {
		s, _ := g.TryAcquire("a", Read)
		s.Pause()
		s.Resume()
		s.Release()
	}
}
