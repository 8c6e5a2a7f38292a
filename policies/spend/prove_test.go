package spend_test

import (
	"errors"
	"testing"

	"github.com/tollgate-dev/tollgate/policies/spend"
)

// A pass makes sums agree with records and holds: upwards at once, downwards when
// the platform's lists have agreed.
func TestSumsAreProved(t *testing.T) {
	r := newReconciled(t)
	r.rent("a")
	r.reserve("b", "", onePod)
	research := spend.Scope{Kind: spend.KindTeam, ID: "research"}
	ops := spend.Scope{Kind: spend.KindTeam, ID: "ops"}
	miscount := func(d ...spend.Difference) {
		t.Helper()
		state, err := r.Show(t.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := r.Repair(t.Context(), org, &spend.Repair{Version: state.Repairs, Differences: d}); err != nil || !done {
			t.Fatalf("Repair = %t, %v", done, err)
		}
	}
	miscount(spend.Difference{Scope: research, Committed: spend.Amounts{spend.GPUs: -1, spend.Pods: 3}}, spend.Difference{Scope: ops, Reserved: onePod})
	r.away = errors.New("the platform is away")
	if err := r.pass(r); !errors.Is(err, r.away) {
		t.Fatalf("pass = %v, want %v", err, r.away)
	}
	want := map[spend.Scope][2]spend.Amounts{
		{Kind: spend.KindOrg}: {onePod, onePod},
		research:              {{onePod[0], 1, 4}, onePod}, // raised, and not lowered
		ops:                   {{}, onePod},
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
	want[research], want[ops] = [2]spend.Amounts{onePod, onePod}, [2]spend.Amounts{}
	check()
}
