package money

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// The share of a budget counts what is used and what is reserved.
func TestNearBudgets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		b    Budget
		want int
	}{
		{Budget{Limit: "10", Used: "2.5", Reserved: "5"}, 75},
		{Budget{Limit: "3", Used: "2", Reserved: "0"}, 67},
		{Budget{Limit: "10", Used: "11", Reserved: "1"}, 120},
		{Budget{Limit: "0", Used: "0", Reserved: "0"}, 100},
	} {
		if got := tt.b.ForScope("acme", "org"); got.Percent != tt.want || got.Org != "acme" || got.Scope != "org" {
			t.Errorf("%+v: %+v, want %d %%", tt.b, got, tt.want)
		}
	}
}

func TestHoldRows(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	h := ledger.Hold{
		ID: "h1", Kind: "pod", Owner: ledger.Owner{Team: "research", Key: "ann"}, At: noon, Until: noon.Add(time.Hour),
		Metadata: ledger.Metadata{Name: "n", Operation: "createPod", Decision: "d1"},
	}
	h.Amounts[ledger.GPUs], h.Amounts[ledger.Burn] = 2, 1_500_000
	want := Hold{
		ID: "h1", State: "in_flight", Kind: "pod", Name: "n", Team: "research", Key: "ann", Since: noon, Age: 90, Operation: "createPod", Decision: "d1",
		Reserves: Amounts{PerHour: "1.5", Runs: "0", GPUs: 2},
	}
	if diff := cmp.Diff(want, holdRow(&h, noon.Add(90*time.Second))); diff != "" {
		t.Errorf("an in-flight hold (-want +got):\n%s", diff)
	}
	h.Open = true
	want.State, want.Open, want.Until = "open", true, &h.Until
	if diff := cmp.Diff(want, holdRow(&h, noon.Add(90*time.Second))); diff != "" {
		t.Errorf("an open hold (-want +got):\n%s", diff)
	}
}

// An owner is known if its team is configured, and if its key is, in this team. Keys that are not configured count for their team.
func TestKnownOwners(t *testing.T) {
	t.Parallel()
	o := &settings.Org{
		ID:    "acme",
		Teams: []settings.Team{{ID: "research", Former: "science"}, {ID: "ops"}},
		Keys:  []settings.Key{{ID: "ann", Team: "research"}, {ID: "bob", Team: "research", MovedFrom: "ops"}},
	}
	is := known(o)
	for owner, want := range map[ledger.Owner]bool{
		{Team: "research"}:                true,
		{Team: "science"}:                 true,
		{Team: "sales"}:                   false,
		{Team: "research", Key: "ann"}:    true,
		{Team: "ops", Key: "ann"}:         false,
		{Team: "ops", Key: "bob"}:         true,
		{Team: "ops", Key: "withdrawn"}:   true,
		{Team: "sales", Key: "withdrawn"}: false,
	} {
		if is(owner) != want {
			t.Errorf("%+v is known: %t, want %t", owner, !want, want)
		}
	}
	var n names
	if !n.changed(o) || n.changed(o) {
		t.Error("the names of an organisation have changed the first time alone")
	}
	o.Keys[0].MovedFrom = "ops"
	if !n.changed(o) {
		t.Error("a key has moved, and the names are the same")
	}
}
