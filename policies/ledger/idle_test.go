package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

// idleRules are those of the traces: looks more than idleGap apart show nothing of the
// time between them, and those more than half of that apart only a part of it.
var idleRules = ledger.Idle{For: 30 * time.Minute, GPUBelow: 5, CPUBelow: 10, Action: ledger.ActionStop, Notice: 10 * time.Minute}

const idleGap = 5 * time.Minute

// stretch is a part of the life of a pod: the content of its record until the next one.
type stretch struct {
	from  time.Time
	use   ledger.Usage
	works bool
	// starts is true if the pod was started where the stretch begins.
	starts bool
}

// trace is the life of a pod.
type trace struct {
	id        string
	owned     bool
	stretches []stretch
	// Its fate: the end of its owner's protection, the first word of a
	// stop, and whether it was stopped.
	kept, announced time.Time
	stopped         bool
}

// at is the stretch at a time, and when the pod was last started.
func (tr *trace) at(t time.Time) (now stretch, started time.Time) {
	for _, s := range tr.stretches {
		if s.from.After(t) {
			break
		}
		if now = s; s.starts {
			started = s.from
		}
	}
	return now, started
}

// idleSince is since when the pod neither worked nor was started, as of a time when it
// does not work.
func (tr *trace) idleSince(t time.Time) (since time.Time) {
	worked := true
	for _, s := range tr.stretches {
		if s.from.After(t) {
			break
		}
		if !s.works && (worked || s.starts) {
			since = s.from
		}
		worked = s.works
	}
	return since
}

// drawTrace draws a life. Work lasts at least idleGap: shorter work can fall between
// two looks.
func drawTrace(t *rapid.T, id string, start time.Time) *trace {
	tr := &trace{id: id, owned: rapid.IntRange(0, 3).Draw(t, "owned") > 0}
	for at, i := start, 0; i < 8; i++ {
		s := stretch{from: at, starts: i == 0 || rapid.IntRange(0, 4).Draw(t, "starts") == 0}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			s.works, s.use = true, ledger.Usage{Known: true, GPU: rapid.Int64Range(5, 100).Draw(t, "gpu"), CPU: rapid.Int64Range(0, 100).Draw(t, "cpu")}
		case 1:
			s.works, s.use = true, ledger.Usage{Known: true, CPU: rapid.Int64Range(10, 100).Draw(t, "cpu")}
		case 2:
			s.use = ledger.Usage{Known: true, GPU: rapid.Int64Range(0, 4).Draw(t, "gpu"), CPU: rapid.Int64Range(0, 9).Draw(t, "cpu")}
		default: // what is not known counts as work
			s.works = true
		}
		s.use.Burn = 430_000
		tr.stretches = append(tr.stretches, s)
		at = at.Add(idleGap + time.Duration(rapid.Int64Range(0, int64(90*time.Minute)).Draw(t, "length")))
	}
	return tr
}

// watched is a reconciler that looks at traces.
type watched struct {
	*storetest.Memory
	storetest.World

	t      *rapid.T
	now    time.Time
	traces map[string]*trace
	pass   func()
}

// List implements ledger.Platform.
func (w *watched) List(context.Context, string, func(operation.Kind) bool) ([]ledger.PlatformResource, error) {
	return w.list(), nil
}

// StopPod implements ledger.Platform.
func (w *watched) StopPod(ctx context.Context, org, id string) (ledger.Amounts, error) {
	return w.stop(ctx, org, id)
}

// Announce implements ledger.Events.
func (w *watched) Announce(_ context.Context, c *ledger.Cause, _ *ledger.Record, ended func(error)) {
	ended(nil)
	if tr := w.traces[c.Idle.ID]; !c.StopAt.IsZero() {
		tr.announced = w.now
	}
}

func newWatched(t *rapid.T, start time.Time) *watched {
	w := &watched{t: t, now: start, traces: make(map[string]*trace)}
	w.Memory = storetest.NewMemory(func() time.Time { return w.now }, nil)
	w.Budgets = &ledger.Plan{Idle: idleRules}
	d := storetest.Deps(w.Memory, w)
	d.Interval = idleGap / 2
	r := ledger.New(d).Loop
	w.pass = func() {
		if _, err := r.Pass(context.Background(), org); err != nil {
			t.Fatal(err)
		}
	}
	w.pass() // makes the ledger complete
	return w
}

func (w *watched) list() (found []ledger.PlatformResource) {
	for id, tr := range w.traces {
		s, started := tr.at(w.now)
		f := ledger.PlatformResource{Kind: operation.KindPod, ID: id, Amounts: onePod, Priced: true, Stoppable: true, Use: s.use}
		f.Use.Uptime = w.now.Sub(started)
		if tr.stopped {
			f.Amounts, f.Stoppable, f.Use = stopped, false, ledger.Usage{Stopped: true, Uptime: -1}
		}
		found = append(found, f)
	}
	return found
}

// stop wants a stopped resource to have been idle, announced, owned and not kept.
func (w *watched) stop(_ context.Context, _, id string) (ledger.Amounts, error) {
	tr := w.traces[id]
	s, _ := tr.at(w.now)
	switch {
	case s.works || w.now.Sub(tr.idleSince(w.now)) < idleRules.For+idleRules.Notice:
		w.t.Errorf("%s: stopped at %s, idle since %s (works %t)", id, w.now, tr.idleSince(w.now), s.works)
	case tr.announced.IsZero() || w.now.Sub(tr.announced) < idleRules.Notice || tr.announced.Before(tr.idleSince(w.now).Add(idleRules.For)):
		w.t.Errorf("%s: stopped at %s, announced at %s", id, w.now, tr.announced)
	case !tr.owned:
		w.t.Errorf("%s: stopped without an owner", id)
	case w.now.Before(tr.kept):
		w.t.Errorf("%s: stopped at %s, kept until %s", id, w.now, tr.kept)
	}
	tr.stopped = true
	return stopped, nil
}

// TestIdleTraces: with any work of pods and any times of looks, no pod that works is
// listed or stopped, and each that is idle is listed when it has been so for the time
// that is set and one look more.
func TestIdleTraces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2027, 3, 14, 12, 0, 0, 0, time.UTC)
		w := newWatched(t, start)
		for i := range 3 {
			tr := drawTrace(t, fmt.Sprintf("pod-%d", i), start)
			w.traces[tr.id] = tr
			if tr.owned {
				o := owner
				if _, err := w.Adjust(t.Context(), org, &ledger.Adjustment{Kind: "pod", Resource: tr.id, Amounts: onePod, Owner: &o}); err != nil {
					t.Fatal(err)
				}
			}
		}
		longest := rapid.SampledFrom([]time.Duration{time.Minute, idleGap, 2 * idleGap}).Draw(t, "longest")
		missed := start // the last moment that no look can vouch for
		for last := start; last.Before(start.Add(8 * time.Hour)); last = w.now {
			w.now = last.Add(time.Duration(rapid.Int64Range(int64(longest/4), int64(longest)).Draw(t, "distance"))).Truncate(time.Second)
			if w.now.Sub(last) > idleGap/2 {
				missed = w.now
			}
			if tr := w.traces[fmt.Sprintf("pod-%d", rapid.IntRange(0, 20).Draw(t, "keep"))]; tr != nil {
				length := time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute
				keeper := ledger.Snoozer{Store: w.Memory}
				kept, err := keeper.Snooze(t.Context(), org, tr.id, length, func(*ledger.Record) error { return nil })
				switch {
				case err == nil:
					tr.kept = kept
				case !errors.Is(err, ledger.ErrNoResource) && !errors.Is(err, ledger.ErrUnavailable):
					t.Fatal(err)
				}
			}
			w.pass()
			w.check(missed)
		}
	})
}

func (w *watched) check(missed time.Time) {
	noticed, err := w.Noticed(w.t.Context(), org)
	if err != nil {
		w.t.Fatal(err)
	}
	at, list, err := idleRules.List(noticed)
	if err != nil || !at.Equal(w.now) {
		w.t.Fatalf("List is of %s (%v), want %s", at, err, w.now)
	}
	listed := make(map[string]bool)
	for _, r := range list {
		listed[r.ID] = true
	}
	for id, tr := range w.traces {
		s, _ := tr.at(w.now)
		since := tr.idleSince(w.now)
		idle := w.now.Sub(since)
		switch {
		case tr.stopped:
		case listed[id] && (s.works || idle < idleRules.For):
			w.t.Errorf("%s is listed at %s, idle since %s (works %t)", id, w.now, since, s.works)
		case !listed[id] && !s.works && idle >= idleRules.For+idleGap && w.now.Sub(missed) >= idleRules.For+idleGap:
			w.t.Errorf("%s is not listed at %s, idle since %s", id, w.now, since)
		}
	}
}

// stopping is a platform whose pods are stopped, and a receiver whose deliveries a test ends if they are slow.
type stopping struct {
	*reconciled

	slow   bool
	ends   []func(error)
	causes []ledger.Cause
	stops  int
}

// Announce implements ledger.Events.
func (s *stopping) Announce(_ context.Context, c *ledger.Cause, _ *ledger.Record, ended func(error)) {
	if !s.slow {
		ended(nil)
	}
	s.ends, s.causes = append(s.ends, ended), append(s.causes, *c)
}

// StopPod implements ledger.Platform.
func (s *stopping) StopPod(context.Context, string, string) (ledger.Amounts, error) {
	s.stops++
	return stopped, nil
}

// TestIdleTimeIsObservedTime: a pod that was busy between two looks of a reconciler that was away for three intervals is not
// stopped, whether its notice was sent before or not; the time without looks does not count.
func TestIdleTimeIsObservedTime(t *testing.T) {
	const interval = time.Minute
	rules := ledger.Idle{For: 10 * time.Minute, Action: ledger.ActionStop, Notice: 3 * time.Minute}
	for _, tt := range []struct {
		name   string
		before int // looks until the gap
		gap    time.Duration
		after  int // looks from the gap on until the pod is stopped
	}{
		{"no gap", 5, interval, 9},
		{"a look too late by half an interval", 5, 3 * interval / 2, 9},
		{"three intervals before the notice", 9, 3 * interval, 14},
		{"three intervals after the notice", 12, 3 * interval, 14},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReconciled(t)
			r.rent("x")
			r.found[0].Use, r.found[0].Stoppable = ledger.Usage{Known: true, Uptime: -1}, true
			a := &stopping{reconciled: r}
			r.Budgets = &ledger.Plan{Idle: rules}
			books := ledger.New(r.deps(a))
			look := func() {
				t.Helper()
				if err := r.passOf(books); err != nil {
					t.Fatal(err)
				}
			}
			for range tt.before {
				look()
				r.now = r.now.Add(interval)
			}
			r.now = r.now.Add(tt.gap - interval) // in which the pod works
			for i := 1; i <= tt.after; i++ {
				look()
				r.now = r.now.Add(interval)
				if a.stops > 0 && i < tt.after {
					t.Fatalf("stopped at look %d after the gap, want %d", i, tt.after)
				}
			}
			if a.stops != 1 {
				t.Errorf("%d stops after %d looks, want 1", a.stops, tt.after)
			}
		})
	}
}

// TestUndeliveredNoticeHoldsBackTheStop: an idle pod is stopped when its notice has passed since the delivery, however long
// that takes. Every pass tries again, one attempt at a time.
func TestUndeliveredNoticeHoldsBackTheStop(t *testing.T) {
	r := newReconciled(t)
	r.rent("x")
	r.found[0].Use, r.found[0].Stoppable = ledger.Usage{Known: true, Uptime: -1}, true
	const interval = time.Minute
	a := &stopping{reconciled: r, slow: true}
	r.Budgets = &ledger.Plan{Idle: ledger.Idle{For: 2 * time.Minute, Action: ledger.ActionStop, Notice: 5 * time.Minute}}
	books := ledger.New(r.deps(a))
	look := func(n int) {
		t.Helper()
		for range n {
			if err := r.passOf(books); err != nil {
				t.Fatal(err)
			}
			r.now = r.now.Add(interval)
		}
	}
	look(30)
	if len(a.ends) != 1 || a.stops != 0 {
		t.Fatalf("while the notice is sent: %d attempts, %d stops, want 1 and 0", len(a.ends), a.stops)
	}
	a.ends[0](errors.New("receiver responded with status 503"))
	look(30)
	if len(a.ends) != 2 || a.stops != 0 {
		t.Fatalf("after a failure: %d attempts, %d stops, want 2 and 0", len(a.ends), a.stops)
	}
	if first := a.causes[0].FirstSent; first.IsZero() || a.causes[1].FirstSent != first || !a.causes[1].StopAt.After(a.causes[0].StopAt) {
		t.Errorf("attempts %+v, want one FirstSent and a later StopAt", a.causes)
	}
	a.ends[1](errors.New("receiver responded with status 503"))
	look(1)
	a.ends[2](nil)
	look(4)
	if a.stops != 0 {
		t.Error("stopped before the notice has passed since the delivery")
	}
	look(1)
	if a.stops != 1 || len(a.ends) != 3 {
		t.Errorf("after the notice: %d stops and %d attempts, want 1 and 3", a.stops, len(a.ends))
	}
}

// Each kind of resource has its own sign of not working, and an unknown sign is
// none.
func TestIdleReasons(t *testing.T) {
	pod := func(u ledger.Usage) ledger.PlatformResource {
		return ledger.PlatformResource{Kind: operation.KindPod, Use: u}
	}
	for name, tt := range map[string]struct {
		found ledger.PlatformResource
		want  ledger.Reason
	}{
		"below both bounds":         {pod(ledger.Usage{Known: true, GPU: 4, CPU: 9, Uptime: -1}), ledger.Unused},
		"a GPU at its bound":        {pod(ledger.Usage{Known: true, GPU: 5, Uptime: -1}), ""},
		"processors at their bound": {pod(ledger.Usage{Known: true, CPU: 10, Uptime: -1}), ""},
		"use not known":             {pod(ledger.Usage{Uptime: -1}), ""},
		"started since":             {pod(ledger.Usage{Known: true, Uptime: time.Minute}), ""},
		"stopped with storage":      {pod(ledger.Usage{Stopped: true, Burn: 1, Uptime: -1}), ledger.Stopped},
		"stopped for nothing":       {pod(ledger.Usage{Stopped: true, Uptime: -1}), ""},
		"workers without jobs":      {ledger.PlatformResource{Kind: operation.KindEndpoint, Use: ledger.Usage{Workers: 2}}, ledger.NoJobs},
		"a worker with a job":       {ledger.PlatformResource{Kind: operation.KindEndpoint, Use: ledger.Usage{Workers: 2, Busy: 1}}, ""},
		"no workers":                {ledger.PlatformResource{Kind: operation.KindEndpoint}, ""},
		"a volume alone":            {ledger.PlatformResource{Kind: operation.KindVolume}, ledger.Unmounted},
		"a mounted volume":          {ledger.PlatformResource{Kind: operation.KindVolume, Use: ledger.Usage{Mounted: true}}, ""},
		"a cluster":                 {ledger.PlatformResource{Kind: operation.KindCluster}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciled(t)
			tt.found.ID, tt.found.Priced = "x", true
			r.found = []ledger.PlatformResource{tt.found}
			rules := ledger.Idle{For: 10 * time.Minute, Forgotten: 10 * time.Minute}
			r.Budgets = &ledger.Plan{Idle: rules}
			d := r.deps(r)
			d.Interval = idleGap
			books := ledger.New(d)
			for range 11 {
				if err := r.passOf(books); err != nil {
					t.Fatal(err)
				}
				r.now = r.now.Add(time.Minute)
			}
			noticed, err := r.Noticed(t.Context(), org)
			if err != nil {
				t.Fatal(err)
			}
			_, list, err := rules.List(noticed)
			var got ledger.Reason
			if len(list) > 0 {
				got = list[0].Reason
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("reason, want-, got+ (%v):\n%s", err, diff)
			}
		})
	}
}
