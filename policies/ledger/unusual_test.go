package ledger_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

// An hour is told of when it has cost many times its usual, once a day and scope, and
// not while there is less than a week to compare it with.
func TestUnusualHours(t *testing.T) {
	const usd = 1_000_000
	start := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC) // a Monday
	for _, tt := range []struct {
		name string
		days int // of history
		// rate is the cost of the team's pod in an hour of a day, in USD.
		rate func(day, hour int) int64
		want []string
	}{
		{"each day like the other", 16, func(int, int) int64 { return 10 }, nil},
		{"four times as much", 16, func(day, _ int) int64 { return 12 + 36*int64(day/16) }, []string{"organisation 47.2 of 12", "team research 47.2 of 12"}},
		{"three times as much", 16, func(day, _ int) int64 { return 12 + 24*int64(day/16) }, nil},
		{"after six days", 6, func(day, _ int) int64 { return 10 + 90*int64(day/6) }, nil},
		{"working hours, on another evening for once", 16, func(day, hour int) int64 {
			if hour >= 8 && hour < 18 || day == 16 {
				return 9
			}
			return 0
		}, nil},
		{"once a week", 16, func(day, _ int) int64 {
			if day%7 == 16%7 {
				return 50
			}
			return 1
		}, nil},
		{"many times cents", 16, func(day, _ int) int64 { return int64(day / 16) }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := start
			store := storetest.NewMemory(func() time.Time { return now }, nil)
			history := &ledger.History{Store: store, Retention: ledger.DefaultConfig().History}
			var told []string
			alerts := &ledger.Alerts{
				Notices: store, History: history, Logger: slog.New(slog.DiscardHandler),
			}
			plan := &ledger.Plan{Unusual: ledger.Unusual{Times: 3, AtLeast: 2 * usd}}
			tell := func(_ context.Context, a *ledger.Alert) error {
				told = append(told, a.Scope.String()+" "+ledger.AmountText(ledger.PerHour, a.Used)+" of "+ledger.AmountText(ledger.PerHour, *a.Usual))
				return nil
			}
			for hour := range tt.days*24 + 24 {
				state, err := store.Show(t.Context(), org)
				if err != nil {
					t.Fatal(err)
				}
				a := ledger.Adjustment{Kind: "pod", Resource: "pod-1", Owner: &ledger.Owner{Team: "research"}}
				a.Amounts[ledger.Burn] = tt.rate(hour/24, hour%24) * usd
				if len(state.Resources) > 0 {
					a.Version = state.Resources[0].Version
				}
				if done, err := ledger.Adjust(t.Context(), store, org, &a); err != nil || !done {
					t.Fatalf("Adjust: %t, %v", done, err)
				}
				now = now.Add(59 * time.Minute)
				if err := history.RollUp(t.Context(), org); err != nil {
					t.Fatal(err)
				}
				if state, err = store.Show(t.Context(), org); err != nil {
					t.Fatal(err)
				}
				if err := alerts.Check(t.Context(), org, plan, &state, tell); err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Minute)
			}
			slices.Sort(told)
			if diff := cmp.Diff(tt.want, told); diff != "" {
				t.Errorf("told of, want-, got+:\n%s", diff)
			}
		})
	}
}
