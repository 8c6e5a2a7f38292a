package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

// TestGroupings wants the sums of any grouping, in any bucket, of any range to be the
// same, and to be those of the parts that a range is cut into.
func TestGroupings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2027, 2, 25, 7, 0, 0, 0, time.UTC)
		begin := now
		store := storetest.NewMemory(func() time.Time { return now }, nil)
		history := &ledger.History{Store: store, Retention: ledger.Retention{Hourly: 40, Daily: 400}}
		roll := func() {
			if err := history.RollUp(t.Context(), org); err != nil {
				t.Fatal(err)
			}
		}
		roll()
		for i := range rapid.IntRange(1, 12).Draw(t, "changes") {
			live(t, store, fmt.Sprint("r", i))
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*24*time.Hour)).Draw(t, "time")))
			if rapid.Bool().Draw(t, "roll") {
				roll()
			}
		}
		hour := func(name string, from, to time.Time) time.Time {
			return from.Add(time.Duration(rapid.IntRange(0, int(to.Sub(from)/time.Hour)).Draw(t, name)) * time.Hour)
		}
		first := ledger.Hourly.Start(begin)
		from := hour("from", first, ledger.Hourly.Start(now))
		to := hour("to", from.Add(time.Hour), ledger.Hourly.Start(now).Add(48*time.Hour))
		sum := func(from, to time.Time, bucket ledger.Unit, by []ledger.Dimension) (sum int64) {
			if from.Equal(to) {
				return 0
			}
			rows, err := history.Query(t.Context(), org, &ledger.Query{From: from, To: to, Bucket: bucket, By: by}, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				sum += r.Micro
			}
			return sum
		}
		want := sum(from, to, ledger.Hourly, ledger.Dimension.Values(""))
		roll()
		if got := sum(from, to, ledger.Hourly, ledger.Dimension.Values("")); got != want {
			t.Errorf("%s to %s: %d after the roll-up, %d before", from, to, got, want)
		}
		bucket := rapid.SampledFrom([]ledger.Unit{ledger.Hourly, ledger.Daily, ledger.Monthly, ledger.Total}).Draw(t, "bucket")
		by := rapid.SliceOfDistinct(rapid.SampledFrom(append(ledger.Dimension.Values(""), "label:project", "label:stage")), func(d ledger.Dimension) ledger.Dimension { return d }).Draw(t, "by")
		if got := sum(from, to, bucket, by); got != want {
			t.Errorf("%s to %s by %v in buckets of a %s: %d, want %d", from, to, by, bucket, got, want)
		}
		cut := hour("cut", from, to)
		if got := sum(from, cut, bucket, by) + sum(cut, to, bucket, by); got != want {
			t.Errorf("%s to %s, cut at %s: %d, want %d", from, to, cut, got, want)
		}
	})
}

// TestRunsOnAnEndpoint: they have the ID of the endpoint and another kind, in any range.
func TestRunsOnAnEndpoint(t *testing.T) {
	now := time.Date(2027, 2, 25, 7, 0, 0, 0, time.UTC)
	from := now
	store := storetest.NewMemory(func() time.Time { return now }, nil)
	history := &ledger.History{Store: store, Retention: ledger.Retention{Hourly: 40, Daily: 400}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(store.BeginRebuild(t.Context(), org, "first"))
	_, err := store.FinishRebuild(t.Context(), org, "first")
	check(err)
	check(history.RollUp(t.Context(), org))
	_, err = ledger.Adjust(t.Context(), store, org, &ledger.Adjustment{Kind: "endpoint", Resource: "ep1", Amounts: ledger.Amounts{5_000_000}})
	check(err)
	_, err = store.Reserve(t.Context(), org, &ledger.Reservation{Hold: "run", Kind: "job", After: ledger.Amounts{ledger.Cost: 3_000_000}, Metadata: ledger.Metadata{Name: "ep1"}, Limits: make([][ledger.Ceilings]int64, 1)})
	check(err)
	check(store.Settle(t.Context(), org, &ledger.Settlement{Hold: "run", End: ledger.Commit, WholeReservation: true}))
	for hours := range 3 {
		now = from.Add(time.Duration(hours+1) * time.Hour)
		check(history.RollUp(t.Context(), org))
		for kind, want := range map[string]int64{"job": 3_000_000, "endpoint": int64(hours+1) * 5_000_000} {
			for _, by := range [][]ledger.Dimension{{ledger.ByKind}, {ledger.ByResource}} {
				q := &ledger.Query{From: from, To: now, Bucket: ledger.Total, By: by, Where: map[ledger.Dimension][]string{ledger.ByKind: {kind}}}
				rows, err := history.Query(t.Context(), org, q, now)
				check(err)
				if len(rows) != 1 || rows[0].Micro != want || rows[0].Item.Kind != kind {
					t.Errorf("%d hours by %s: the kind %s has %+v, want %d", hours+1, by, kind, rows, want)
				}
			}
		}
	}
}

// live makes a resource, or changes or removes it.
func live(t *rapid.T, store *storetest.Memory, fresh string) {
	state, err := store.Show(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	owner := rapid.SampledFrom([]ledger.Owner{{}, {Team: "research", Key: "ann"}, {Team: "ops"}}).Draw(t, "owner")
	a := &ledger.Adjustment{
		Kind: "pod", Resource: fresh, Owner: &owner, Amounts: ledger.Amounts{rapid.Int64Range(0, 5_000_000).Draw(t, "rate")},
		Metadata: ledger.Metadata{
			GPU:    rapid.SampledFrom([]string{"", "NVIDIA L4"}).Draw(t, "gpu"),
			Labels: rapid.SampledFrom([]ledger.Labels{"", "project=llm", "project=llm,stage=test", "project=vision"}).Draw(t, "labels"),
		},
	}
	if n := len(state.Resources); n > 0 && rapid.Bool().Draw(t, "known") {
		r := state.Resources[rapid.IntRange(0, n-1).Draw(t, "which")]
		a.Resource, a.Version, a.Gone = r.ID, r.Version, rapid.Bool().Draw(t, "gone")
	}
	if done, err := ledger.Adjust(t.Context(), store, org, a); err != nil || !done {
		t.Fatalf("Adjust = %t, %v", done, err)
	}
}
