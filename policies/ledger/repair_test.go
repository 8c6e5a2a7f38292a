package ledger_test

import (
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// A pass makes sums agree with records and holds: upwards at once, downwards when
// the platform's lists have agreed.
func TestRepairSums(t *testing.T) {
	r := newReconciled(t)
	r.rent("a")
	r.reserve("b", "", onePod)
	research := ledger.Scope{Kind: ledger.KindTeam, ID: "research"}
	ops := ledger.Scope{Kind: ledger.KindTeam, ID: "ops"}
	miscount := func(d ...ledger.Difference) {
		t.Helper()
		state, err := r.Show(t.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := r.Repair(t.Context(), org, &ledger.Repair{Version: state.Repairs, Differences: d}); err != nil || !done {
			t.Fatalf("Repair = %t, %v", done, err)
		}
	}
	miscount(ledger.Difference{Scope: research, Committed: ledger.Amounts{ledger.GPUs: -1, ledger.Pods: 3}}, ledger.Difference{Scope: ops, Reserved: onePod})
	r.away = errors.New("the platform is away")
	if err := r.pass(r); !errors.Is(err, r.away) {
		t.Fatalf("pass = %v, want %v", err, r.away)
	}
	want := map[ledger.Scope][2]ledger.Amounts{
		{Kind: ledger.KindOrg}: {onePod, onePod},
		research:               {{onePod[0], 1, 4}, onePod}, // raised, and not lowered
		ops:                    {{}, onePod},
	}
	check := func() {
		t.Helper()
		state, err := r.Show(t.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range state.Balances {
			if w, ok := want[b.Scope]; ok && (b.Committed != w[0] || b.Reserved != w[1]) {
				t.Errorf("%s has committed %v and reserved %v, want %v", b.Scope, b.Committed, b.Reserved, w)
			}
		}
	}
	check()
	r.away = nil
	if err := r.pass(r); err != nil {
		t.Fatal(err)
	}
	want[research], want[ops] = [2]ledger.Amounts{onePod, onePod}, [2]ledger.Amounts{}
	check()
}
