package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

// The first reservation after an organisation has budgets again counts the resources of the time without budgets. Without an
// interruption, reservations do not wait for a pass.
func TestBudgetsSetAgain(t *testing.T) {
	r := newReconciled(t)
	r.rent("a")
	r.Budgets, r.Orgs = &ledger.Plan{Org: ledger.Budget{PerHour: 1_000_000}}, []string{org}
	lists := 0
	r.listed = func() { lists++ }
	d := storetest.Deps(r.Memory, r)
	books := ledger.New(d)
	poll := func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = books.Watch.Run(ctx) // polls once
	}
	reserve := func(hold string) ledger.Quote {
		t.Helper()
		q, err := books.Ledger.Reserve(t.Context(), org, r.Budgets, ledger.Reservation{Hold: hold, Kind: "pod", Owner: owner, After: onePod})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(t.Context(), org, &ledger.Settlement{Hold: hold, End: ledger.Release}); err != nil {
			t.Fatal(err)
		}
		return q
	}
	if err := r.pass(r.Memory); err != nil { // of an earlier gateway
		t.Fatal(err)
	}
	lists = 0
	r.now = r.now.Add(time.Hour)
	poll()
	if q := reserve("b"); q.Refused != nil || lists != 0 {
		t.Fatalf("refused by %v after %d lists", q.Refused, lists)
	}
	r.Orgs = nil
	poll()
	r.has("b", onePod)
	r.Orgs = []string{org}
	if q := reserve("c"); q.Refused == nil || lists == 0 {
		t.Errorf("admitted after %d lists, although a pod was created without budgets", lists)
	}
	lists = 0
	if q := reserve("d"); q.Refused == nil || lists != 0 {
		t.Errorf("refused by %v after %d lists", q.Refused, lists)
	}
}

// The first reservation after a start counts the resources of the time without budgets: no gateway has reconciled the ledger in this time.
func TestBudgetsSetAgainAtAStart(t *testing.T) {
	for name, tt := range map[string]struct {
		without time.Duration
		lists   int
	}{"a restart": {time.Minute, 0}, "after a day": {24 * time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			r := newReconciled(t)
			r.Budgets, r.Orgs = &ledger.Plan{Org: ledger.Budget{PerHour: 1_000_000}}, []string{org}
			if err := r.pass(r.Memory); err != nil {
				t.Fatal(err)
			}
			r.now = r.now.Add(tt.without)
			lists := 0
			r.listed = func() { lists++ }
			books := ledger.New(storetest.Deps(r.Memory, r))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = books.Watch.Run(ctx) // polls once
			for _, hold := range []string{"a", "b"} {
				if _, err := books.Ledger.Reserve(t.Context(), org, r.Budgets, ledger.Reservation{Hold: hold, Kind: "pod", Owner: owner, After: onePod}); err != nil {
					t.Fatal(err)
				}
			}
			if lists != tt.lists {
				t.Errorf("%d lists, want %d", lists, tt.lists)
			}
		})
	}
}
