package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/operation"
)

// TestMissing: a resource missing from the list stays in the ledger until a GET answers 404, neither
// counted in the first minute after the last change.
func TestMissing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		after   time.Duration
		hidden  bool // from the list alone
		failing bool
		gone    bool
		asked   int
		missing int
	}{
		{name: "gone", after: time.Minute, gone: true, asked: 1},
		{name: "hidden", after: time.Minute, hidden: true, asked: 1, missing: 1},
		{name: "a GET that fails", after: time.Minute, failing: true, asked: 1, missing: 1},
		{name: "changed lately", after: 59 * time.Second, missing: 1},
		{name: "changed a moment ago", after: 9 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReconciled(t)
			r.rent("a")
			if r.found = nil; tt.hidden {
				r.has("a", onePod)
				r.hidden, r.found = r.found, nil
			}
			r.now, r.failing = r.now.Add(tt.after), tt.failing
			if err := r.pass(r.Memory); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"pod-a": fmt.Sprint(owner, onePod)}
			if tt.gone {
				want = map[string]string{}
			}
			if diff := cmp.Diff(want, r.takes()); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
			if r.asked != tt.asked || r.report.Missing != tt.missing || r.report.ListIncomplete != (tt.missing > 0) {
				t.Errorf("%d GETs, %d missing, short is %t, want %d and %d", r.asked, r.report.Missing, r.report.ListIncomplete, tt.asked, tt.missing)
			}
		})
	}
}

// TestMissingWithHold: the hold of a change to a resource missing from the list ends when a GET answers
// 404, and the record with it; otherwise it stays.
func TestMissingWithHold(t *testing.T) {
	for _, hidden := range []bool{false, true} {
		r := newReconciled(t)
		r.rent("a")
		r.now = r.now.Add(time.Minute)
		r.reserve("delete", "pod-a", ledger.Amounts{})
		r.settle(ledger.Settlement{Hold: "delete", End: ledger.Open, ResolveWithin: time.Minute})
		if r.found = nil; hidden {
			r.failing = true
		}
		if err := r.pass(r.Memory); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		if hidden {
			want = map[string]string{"pod-a": fmt.Sprint(owner, onePod), "delete": "hold"}
		}
		if diff := cmp.Diff(want, r.takes()); diff != "" {
			t.Errorf("ledger (-want +got):\n%s", diff)
		}
		if len(r.report.Drifted) > 0 {
			t.Errorf("drifted: %v, want a call to have ended it", r.report.Drifted)
		}
	}
}

// TestMissingIsLimited: a pass asks for some of the resources missing from the list, and removes the rest
// of them in the next ones.
func TestMissingIsLimited(t *testing.T) {
	r := newReconciled(t)
	for i := range 250 {
		r.rent(fmt.Sprint(i))
	}
	r.found, r.now = nil, r.now.Add(time.Minute)
	for _, left := range []int{150, 50, 0} {
		if err := r.pass(r.Memory); err != nil {
			t.Fatal(err)
		}
		if got := len(r.takes()); got != left {
			t.Fatalf("%d are left, want %d", got, left)
		}
	}
}

// TestOwnersComeBack: the owner of a resource that the reconciler removed is given back when the
// id returns within 30 days.
func TestOwnersComeBack(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		want  ledger.Owner
	}{{29 * 24 * time.Hour, owner}, {30 * 24 * time.Hour, ledger.Owner{}}} {
		r := newReconciled(t)
		r.rent("a")
		found := r.found
		r.found, r.now = nil, r.now.Add(time.Minute)
		if err := r.pass(r.Memory); err != nil {
			t.Fatal(err)
		}
		r.found, r.now = found, r.now.Add(tt.after)
		if err := r.pass(r.Memory); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"pod-a": fmt.Sprint(tt.want, onePod)}, r.takes()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", tt.after, diff)
		}
		if strangers := len(r.report.Unmanaged); (strangers > 0) != (tt.want == ledger.Owner{}) {
			t.Errorf("after %s: %d are strangers", tt.after, strangers)
		}
	}
}

// TestWorkersThatAreStillThere: an endpoint that is to have fewer workers takes those
// there are, until a look at them shows fewer.
func TestWorkersThatAreStillThere(t *testing.T) {
	three, none := ledger.Amounts{ledger.Burn: 300, ledger.GPUs: 3, ledger.Workers: 3}, ledger.Amounts{}
	r := newReconciled(t)
	endpoint := func(a ledger.Amounts, unread bool) []ledger.PlatformResource {
		return []ledger.PlatformResource{{Kind: operation.KindEndpoint, ID: "e", Amounts: a, Priced: true, WorkersUnknown: unread}}
	}
	if _, err := ledger.Adjust(t.Context(), r, org, &ledger.Adjustment{Kind: string(operation.KindEndpoint), Resource: "e", Amounts: three, Owner: &owner}); err != nil {
		t.Fatal(err)
	}
	r.now = r.now.Add(time.Minute)
	for _, tt := range []struct {
		listed, got ledger.Amounts
		failing     bool
		want        ledger.Amounts
	}{{none, three, false, three}, {none, none, true, three}, {none, none, false, none}} {
		r.found, r.failing = endpoint(tt.listed, true), tt.failing
		r.looked = endpoint(tt.got, false)
		if err := r.pass(r.Memory); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"e": fmt.Sprint(owner, tt.want)}, r.takes()); diff != "" {
			t.Errorf("listed %v, got %v (-want +got):\n%s", tt.listed, tt.got, diff)
		}
	}
}
