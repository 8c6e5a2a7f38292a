package ledger_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// After the store loses its data, the gateways restore the snoozes that they know from the last pass or have set themselves. Snoozes that
// were ended are not restored.
func TestSnoozesOutliveALoss(t *testing.T) {
	for name, lose := range map[string]func(f *fleet){
		"everything": func(f *fleet) {
			f.empty(2)
			if err := f.rebuild(f.t.Context(), f.gateways[0]); err != nil {
				f.t.Fatal(err)
			}
		},
		"the notices": func(f *fleet) {
			noticed, err := f.store.Noticed(f.t.Context(), org)
			if err != nil {
				f.t.Fatal(err)
			}
			for name := range noticed {
				if err := f.store.Notice(f.t.Context(), org, name, ""); err != nil {
					f.t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "a", "b")
				a, b := f.gateways[0], f.gateways[1]
				for _, g := range f.gateways {
					g.Budgets = &ledger.Plan{Idle: ledger.Idle{For: time.Minute, Action: ledger.ActionStop, Notice: time.Minute}}
				}
				for _, id := range []string{"kept", "late", "ended", "ended elsewhere"} {
					f.found = append(f.found, ledger.PlatformResource{Kind: operation.KindPod, ID: id, Name: id, Amounts: onePod, Priced: true})
				}
				f.run(a, b)
				pass := func() {
					t.Helper()
					if _, err := a.books.Loop.Pass(t.Context(), org); err != nil {
						t.Fatal(err)
					}
				}
				snooze := func(g *gateway, id string, length time.Duration) {
					t.Helper()
					s := ledger.Snoozer{Store: g.Outbox}
					if _, err := s.Snooze(t.Context(), org, id, length, func(*ledger.Record) error { return nil }); err != nil {
						t.Fatal(err)
					}
				}
				pass()
				snooze(b, "kept", time.Hour)
				snooze(b, "ended elsewhere", time.Hour)
				snooze(a, "ended", time.Hour)
				pass()
				snooze(a, "ended elsewhere", 0)
				pass()
				time.Sleep(time.Second) // every gateway has polled
				snooze(a, "ended", 0)
				if name == "everything" { // the loss of the notices alone is not announced to other gateways
					snooze(b, "late", time.Hour)
				}
				lose(f)
				pass()
				time.Sleep(time.Second) // every gateway has polled
				noticed, err := f.store.Noticed(t.Context(), org)
				if err != nil {
					t.Fatal(err)
				}
				got := ledger.SnoozedUntil(noticed)
				if got["kept"].IsZero() || !got["ended"].IsZero() || !got["ended elsewhere"].IsZero() || got["late"].IsZero() != (name == "the notices") {
					t.Errorf("snoozed until %v", got)
				}
			})
		})
	}
}
