package storetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// retention applies to these cases.
var retention = ledger.Retention{Hourly: 2, Daily: 40}

func (h *harness) roll() {
	h.Helper()
	if err := (&ledger.History{Store: h.Store, Retention: retention}).RollUp(h.Context(), h.org); err != nil {
		h.Fatalf("Roll: %v", err)
	}
}

// cost returns the costs of some units, by resource and owner.
func (h *harness) cost(u ledger.Unit, starts ...time.Time) map[string]int64 {
	h.Helper()
	rows, err := h.Store.Rollups(h.Context(), h.org, u, starts)
	if err != nil {
		h.Fatalf("Rollups: %v", err)
	}
	got := make(map[string]int64)
	for _, r := range rows {
		got[r.Start.Format("02T15 ")+r.Item.Resource+" of "+r.Item.Owner.String()] += r.Micro
	}
	return got
}

func (h *harness) costs(u ledger.Unit, want map[string]int64, starts ...time.Time) {
	h.Helper()
	if diff := cmp.Diff(want, h.cost(u, starts...)); diff != "" {
		h.Errorf("by %s (-want +got):\n%s", u, diff)
	}
}

func testRollups(h *harness) {
	h.movable()
	h.roll() // from now on
	p := teamPerHour(10 * usd)
	h.advance(30 * time.Minute) // 12:30
	id, _ := h.reserve(p, pod(usd))
	h.advance(90 * time.Minute) // 14:00: the platform took its time, and the pod ran
	h.roll()
	h.commit(id, "p1", pod(usd))
	h.advance(10 * time.Minute)
	h.roll()
	h.roll()
	h.advance(20 * time.Minute) // 14:30
	h.ask(p, &ledger.Reservation{Hold: "more", Kind: "pod", Resource: "p1", Owner: ann, After: pod(3 * usd)})
	h.commit("more", "p1", pod(3*usd))
	h.advance(30 * time.Minute) // 15:00
	h.adjust("p1", &ledger.Owner{Team: "ops"}, pod(3*usd))
	h.advance(20 * time.Minute) // 15:20
	h.ask(p, &ledger.Reservation{Hold: "gone", Kind: "pod", Resource: "p1", Owner: ledger.Owner{Team: "ops"}, Free: true})
	h.settle(ledger.Settlement{Hold: "gone", End: ledger.Commit, Kind: "pod", Resource: "p1", Gone: true})
	h.set(start.Add(36 * time.Hour))
	h.roll()
	h.costs(ledger.Hourly, map[string]int64{
		"14T12 p1 of team research": 0.5 * usd, "14T13 p1 of team research": usd, "14T14 p1 of team research": 2 * usd, "14T15 p1 of team ops": usd,
	}, start, start.Add(time.Hour), start.Add(2*time.Hour), start.Add(3*time.Hour), start.Add(4*time.Hour))
	h.costs(ledger.Daily, map[string]int64{"14T00 p1 of team research": 3.5 * usd, "14T00 p1 of team ops": usd},
		ledger.Daily.Start(start), ledger.Daily.Start(start).AddDate(0, 0, 1))
}

// testOnce rolls up one-time costs: by owner and endpoint, not by call.
func testOnce(h *harness) {
	h.movable()
	h.roll() // from now on
	p := perDay(10 * usd)
	for i, micro := range []int64{0.5 * usd, 0.25 * usd, 0} {
		r := ledger.Reservation{
			Hold: string(rune('a' + i)), Kind: "job", Owner: ann, After: ledger.Amounts{ledger.Cost: usd}, Limits: limits(p, ann),
			Metadata: ledger.Metadata{Operation: "run", Name: "k2n5x8", Decision: string(rune('A' + i))},
		}
		h.ask(p, &r)
		h.settle(ledger.Settlement{Hold: r.Hold, End: ledger.Commit, Amounts: ledger.Amounts{ledger.Cost: micro}})
	}
	h.advance(time.Hour)
	h.run(p, "full", 0.125*usd)
	h.settle(ledger.Settlement{Hold: "full", End: ledger.Commit, WholeReservation: true})
	h.roll()
	h.roll()
	want := map[string]int64{"14T12 k2n5x8 of team research": 0.75 * usd, "14T13  of team research": 0.125 * usd}
	h.costs(ledger.Hourly, want, start, start.Add(time.Hour))
	if rows, err := h.Store.Rollups(h.Context(), h.org, ledger.Hourly, []time.Time{start}); err != nil || len(rows) != 1 || rows[0].Item.Decision != "" {
		h.Errorf("rows = %+v, %v, want one without a decision", rows, err)
	}
	h.spent(0.875*usd, 0)
}

// adjust makes a record another owner's.
func (h *harness) adjust(id string, to *ledger.Owner, a ledger.Amounts) {
	h.Helper()
	done, err := ledger.Adjust(h.Context(), h.Store, h.org, &ledger.Adjustment{Kind: "pod", Resource: id, Version: h.record(id).Version, Amounts: a, Owner: to})
	if err != nil || !done {
		h.Fatalf("Adjust = %t, %v", done, err)
	}
}

func (h *harness) tally() ledger.RollupInput {
	h.Helper()
	t, err := h.Store.RollupInput(h.Context(), h.org)
	if err != nil {
		h.Fatalf("Tally: %v", err)
	}
	return t
}

// testPostOnce repeats a posting, as one does whose answer was lost, and makes one
// from a tally that is not the latest any more.
func testPostOnce(h *harness) {
	h.roll()
	id, _ := h.reserve(teamPerHour(usd), pod(usd))
	h.commit(id, "p1", pod(usd))
	before := h.tally()
	at := ledger.Hourly.Start(before.Now)
	p := &ledger.Posting{
		Version: before.Version, Until: before.Now, Changes: len(before.Changes), Retention: retention,
		Series:  []ledger.Series{{Item: before.Changes[0].Item, Rate: usd, Carry: 7}},
		Rollups: []ledger.Rollup{{Start: at, Item: before.Changes[0].Item, Micro: 5}},
	}
	for i, want := range []bool{true, false} {
		if done, err := h.Store.Post(h.Context(), h.org, p); err != nil || done != want {
			h.Errorf("posting %d: %t, %v, want %t", i, done, err, want)
		}
	}
	h.costs(ledger.Hourly, map[string]int64{at.Format("02T15 ") + "p1 of team research": 5}, at)
	after := h.tally()
	if len(after.Changes) != 0 || after.Version == before.Version {
		h.Errorf("after the posting: version %d, changes %v", after.Version, after.Changes)
	}
	if diff := cmp.Diff(p.Series, after.Series); diff != "" {
		h.Errorf("series (-want +got):\n%s", diff)
	}
}

// testManyChanges rolls up more changes, and more series, than one posting has: starts
// and stops of the same pods in turn, some of which ran before that was known.
func testManyChanges(h *harness) {
	h.movable()
	h.roll() // from now on
	p := teamPerHour(1000 * usd)
	const pods, turns = 300, 4
	for i := range pods {
		id := fmt.Sprint("p", i)
		h.ask(p, &ledger.Reservation{Hold: id, Kind: "pod", Owner: ann, After: pod(usd)})
	}
	h.advance(15 * time.Minute)
	for i := range pods {
		h.commit(fmt.Sprint("p", i), fmt.Sprint("p", i), pod(usd))
	}
	for turn := range turns {
		h.advance(15 * time.Minute)
		var list []*ledger.Adjustment
		for _, r := range h.show().Resources {
			a := &ledger.Adjustment{Kind: "pod", Resource: r.ID, Version: r.Version, Amounts: pod(usd)}
			if turn%2 == 0 {
				a.Amounts = ledger.Amounts{}
			}
			list = append(list, a)
		}
		if _, err := h.Store.Adjust(h.Context(), h.org, list...); err != nil {
			h.Fatal(err)
		}
	}
	h.advance(15 * time.Minute) // 13:30: they ran from 12:00, but from 12:30 to 12:45 and from 13:00 to 13:15
	h.roll()
	got := h.cost(ledger.Daily, ledger.Daily.Start(start))
	for i := range pods {
		if micro := got[fmt.Sprintf("14T00 p%d of team research", i)]; micro != usd {
			h.Fatalf("p%d has cost %d, want %d", i, micro, int64(usd))
		}
	}
	h.advance(90 * time.Minute)
	h.roll()
	if got := h.cost(ledger.Hourly, start.Add(2*time.Hour)); len(got) != pods || got["14T14 p7 of team research"] != usd {
		h.Errorf("%d have cost something from 14:00 to 15:00, p7 %d", len(got), got["14T14 p7 of team research"])
	}
}

func testFirstRoll(h *harness) {
	h.movable()
	id, _ := h.reserve(teamPerHour(usd), pod(usd))
	h.commit(id, "p1", pod(usd))
	h.advance(time.Hour)
	h.roll()
	h.advance(15 * time.Minute)
	h.roll()
	h.costs(ledger.Hourly, map[string]int64{"14T13 p1 of team research": usd / 4}, start, start.Add(time.Hour))
}

func testRetention(h *harness) {
	h.movable()
	h.roll()
	id, _ := h.reserve(teamPerHour(usd), pod(usd))
	h.commit(id, "p1", pod(usd))
	h.advance(time.Hour)
	h.roll()
	day := ledger.Daily.Start(start)
	for _, tt := range []struct {
		unit ledger.Unit
		at   time.Time
		end  time.Time
	}{
		{ledger.Hourly, start, start.Add(time.Hour).AddDate(0, 0, retention.Hourly)},
		{ledger.Daily, day, day.AddDate(0, 0, 1+retention.Daily)},
	} {
		h.set(tt.end.Add(-time.Second))
		if got := h.cost(tt.unit, tt.at); len(got) != 1 {
			h.Errorf("a second before its end, the %s has %v, want p1", tt.unit, got)
		}
		h.set(tt.end)
		h.costs(tt.unit, map[string]int64{}, tt.at)
	}
}

// testLabels wants labels in the record and in the costs of resources made with them,
// with any later owner, and when they are gone.
func testLabels(h *harness) {
	h.movable()
	h.roll() // from now on
	p := teamPerHour(10 * usd)
	about := ledger.Metadata{Operation: "createPod", Labels: "project=llm,stage=test"}
	h.ask(p, &ledger.Reservation{Hold: "h", Kind: "pod", Owner: ann, After: pod(usd), Metadata: about, Limits: limits(p, ann)})
	if s := h.show(); len(s.Holds) != 1 || s.Holds[0].Metadata.Labels != about.Labels {
		h.Errorf("holds = %+v, want one with the labels %s", s.Holds, about.Labels)
	}
	h.commit("h", "p1", pod(usd))
	h.advance(30 * time.Minute)
	h.ask(p, &ledger.Reservation{Hold: "more", Kind: "pod", Resource: "p1", Owner: ann, After: pod(2 * usd), Limits: limits(p, ann)})
	h.commit("more", "p1", pod(2*usd))
	h.advance(30 * time.Minute)
	h.adjust("p1", &ledger.Owner{Team: "ops"}, pod(2*usd))
	if got := h.record("p1").Metadata.Labels; got != about.Labels {
		h.Errorf("labels of the record = %q, want %q", got, about.Labels)
	}
	h.advance(30 * time.Minute)
	h.ask(p, &ledger.Reservation{Hold: "gone", Kind: "pod", Resource: "p1", Owner: ledger.Owner{Team: "ops"}, Free: true})
	h.settle(ledger.Settlement{Hold: "gone", End: ledger.Commit, Kind: "pod", Resource: "p1", Gone: true})
	h.roll()
	history := &ledger.History{Store: h.Store, Retention: retention}
	q := ledger.Query{From: start, To: start.Add(3 * time.Hour), Bucket: ledger.Total}
	for _, tt := range []struct {
		by    []ledger.Dimension
		where map[ledger.Dimension][]string
		want  map[ledger.Labels]int64
	}{
		{[]ledger.Dimension{"label:project"}, nil, map[ledger.Labels]int64{"project=llm": 2.5 * usd}},
		{[]ledger.Dimension{"label:stage", "label:project"}, nil, map[ledger.Labels]int64{"project=llm,stage=test": 2.5 * usd}},
		{[]ledger.Dimension{"label:none"}, nil, map[ledger.Labels]int64{"": 2.5 * usd}},
		{[]ledger.Dimension{ledger.ByTeam}, map[ledger.Dimension][]string{"label:project": {"vision"}}, map[ledger.Labels]int64{}},
		{[]ledger.Dimension{ledger.ByResource}, map[ledger.Dimension][]string{"label:none": {""}}, map[ledger.Labels]int64{about.Labels: 2.5 * usd}},
	} {
		q.By, q.Where = tt.by, tt.where
		rows, err := history.Query(h.Context(), h.org, &q, h.at)
		if err != nil {
			h.Fatalf("Ask: %v", err)
		}
		got := make(map[ledger.Labels]int64)
		for _, r := range rows {
			got[r.Item.Labels] += r.Micro
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			h.Errorf("by %v where %v (-want +got):\n%s", tt.by, tt.where, diff)
		}
	}
}
