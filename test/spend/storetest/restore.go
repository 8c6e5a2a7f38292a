package storetest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// begin begins a rebuild, and returns its epoch.
func (h *harness) begin() int64 {
	h.Helper()
	if err := h.Store.BeginRebuild(h.Context(), h.org, "again"); err != nil {
		h.Fatal(err)
	}
	return h.show().Epoch
}

// restore restores reservations, and wants these IDs to be added.
func (h *harness) restore(r ledger.Restoration, want ...string) {
	h.Helper()
	added, err := h.Store.Restore(h.Context(), h.org, &r)
	if err != nil {
		h.Fatalf("Restore: %v", err)
	}
	var ids []string
	for i := range added {
		ids = append(ids, added[i].ID)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		h.Errorf("restored holds (-want +got):\n%s", diff)
	}
}

// held is a hold as a gateway remembers it.
func (h *harness) held(id string, a ledger.Amounts) ledger.RestoredHold {
	return ledger.RestoredHold{Hold: ledger.Hold{
		ID: id, Kind: "pod", Owner: ann, Amounts: a, At: h.show().Now, Holder: ledger.Holder{Incarnation: "01J", Gateway: "gw"},
	}, Accrued: true}
}

func testRestore(h *harness) {
	id, _ := h.reserve(teamPerHour(usd), pod(0.3*usd))
	h.settle(ledger.Settlement{Hold: "ended", End: ledger.Release})
	epoch := h.begin()
	open := h.held("open", pod(0.1*usd))
	open.Open, open.Until = true, open.At.Add(time.Minute)
	lost := h.held("lost", pod(0.2*usd))
	r := ledger.Restoration{Epoch: epoch, Holds: []ledger.RestoredHold{h.held(id, pod(0.3*usd)), h.held("ended", pod(usd)), lost, open}}
	h.restore(r, "lost", "open")
	three := pod(0.6 * usd)
	three[ledger.GPUs], three[ledger.Pods] = 3, 3
	h.counts(ledger.Amounts{}, three)
	h.restore(r) // everything exists
	h.counts(ledger.Amounts{}, three)
	if done, err := h.Store.FinishRebuild(h.Context(), h.org, "again"); err != nil || !done {
		h.Fatalf("Finish = %t, %v", done, err)
	}
	late := h.held("late", pod(5*usd)) // above every ceiling
	h.restore(ledger.Restoration{Epoch: epoch, Holds: []ledger.RestoredHold{late}}, "late")
	for _, got := range h.show().Holds {
		switch got.ID {
		case "open":
			if !got.Open || !got.Until.Equal(open.Until) || got.Owner != ann || got.Holder != open.Holder {
				h.Errorf("open hold = %+v, want %+v", got, open.Hold)
			}
		case id, "lost", "late":
			if got.Open {
				h.Errorf("hold %s is open", got.ID)
			}
		default:
			h.Errorf("hold %s, want none", got.ID)
		}
	}
	// A store that went back has holds that have ended, and a hold in flight that has been opened since.
	lost.Open, lost.Until = true, lost.At.Add(time.Minute)
	h.restore(ledger.Restoration{Epoch: epoch, Ended: []string{"late", id}, Holds: []ledger.RestoredHold{lost, late}})
	for _, got := range h.show().Holds {
		if !got.Open {
			h.Errorf("hold %s is in flight, want only the open ones", got.ID)
		}
	}
	h.commit("lost", "p1", pod(0.2*usd))
	h.commit("open", "p2", pod(0.1*usd))
	two := pod(0.3 * usd)
	two[ledger.GPUs], two[ledger.Pods] = 2, 2
	h.counts(two, ledger.Amounts{})
	job := ledger.Job{Endpoint: "e", ID: "j"}
	h.restore(ledger.Restoration{Epoch: epoch, Jobs: []ledger.OwnedJob{{Job: job, Owner: ann, Until: h.show().Now.Add(time.Hour)}}})
	if owners, _, err := h.Store.Owners(h.Context(), h.org, nil, job); err != nil || owners[0] != ann {
		h.Errorf("owner of the job = %v, %v, want %v", owners, err, ann)
	}
}

// testRestoreAccrual: a hold accrues from its beginning, and not twice if the offered balances contain the accrual.
func testRestoreAccrual(h *harness) {
	h.movable()
	epoch := h.begin()
	one, two := h.held("accrued", pod(usd)), h.held("new", pod(2*usd))
	two.Accrued = false
	h.advance(30 * time.Minute)
	h.restore(ledger.Restoration{Epoch: epoch, Holds: []ledger.RestoredHold{one, two}}, "accrued", "new")
	if b := h.balance(ann.Scopes()[1]); b.Day != usd || b.Month != usd {
		h.Errorf("accrued %d today and %d this month, want half an hour of the new hold: %d", b.Day, b.Month, usd)
	}
	h.settle(ledger.Settlement{Hold: "new", End: ledger.Release})
	if b := h.balance(ann.Scopes()[1]); b.Day != 0 {
		h.Errorf("accrued %d after the release, want 0", b.Day)
	}
}

func testRestoreEpoch(h *harness) {
	epoch := h.begin()
	h.begin()
	if _, err := h.Store.Restore(h.Context(), h.org, &ledger.Restoration{Epoch: epoch, Holds: []ledger.RestoredHold{h.held("h", pod(1))}}); !errors.Is(err, ledger.ErrEpochChanged) {
		h.Errorf("Restore into another rebuild: %v, want %v", err, ledger.ErrEpochChanged)
	}
	h.counts(ledger.Amounts{}, ledger.Amounts{})
}

// testCostWithoutHold: the cost of a call whose hold was lost accrues to its owner, once.
func testCostWithoutHold(h *harness) {
	for range 2 {
		h.settle(ledger.Settlement{Hold: "job e 1", End: ledger.Commit, Kind: "job", Owner: ann, Amounts: ledger.Amounts{ledger.Cost: 0.25 * usd}})
	}
	h.spent(0.25*usd, 0)
	h.settle(ledger.Settlement{Hold: "h", End: ledger.Commit, WholeReservation: true, Kind: "job", Owner: ann, Amounts: ledger.Amounts{ledger.Cost: 0.1 * usd}, Metadata: ledger.Metadata{MaxCost: 0.5 * usd}})
	h.spent(0.75*usd, 0)
	if h.SetTime == nil {
		return
	}
	h.advance(12 * time.Hour) // the platform reports the result of a job for a day
	h.settle(ledger.Settlement{Hold: "job e 1", End: ledger.Commit, Kind: "job", Owner: ann, Amounts: ledger.Amounts{ledger.Cost: 0.25 * usd}})
	if b := h.balance(ann.Scopes()[1]); b.Month != 0.75*usd {
		h.Errorf("accrued %d this month, want %d: the job has been charged", b.Month, int64(0.75*usd))
	}
}

// testTombstone: a commit or a list that arrives after the removal of a resource does not enter it again.
func testTombstone(h *harness) {
	p := teamPerHour(usd)
	id, _ := h.reserve(p, pod(0.6*usd))
	h.settle(ledger.Settlement{Hold: "delete", End: ledger.Commit, Kind: "pod", Resource: "p1", Gone: true, Owner: ann})
	h.commit(id, "p1", pod(0.6*usd))
	h.counts(ledger.Amounts{}, ledger.Amounts{})
	if made, err := ledger.Adjust(h.Context(), h.Store, h.org, &ledger.Adjustment{Kind: "pod", Resource: "p1", Amounts: pod(usd)}); err != nil || made {
		h.Errorf("Adjust = %t, %v, want an old list to change nothing", made, err)
	}
	h.counts(ledger.Amounts{}, ledger.Amounts{})
}

// testCostOfAJob: the result of a job whose hold was lost is charged to the recorded owner of the job, and the result of
// a job that was charged under another hold is not charged again.
func testCostOfAJob(h *harness) {
	job := ledger.Job{Endpoint: "e", ID: "1"}
	if err := h.Store.SetJobOwner(h.Context(), h.org, job, ann, time.Hour); err != nil {
		h.Fatal(err)
	}
	result := ledger.Settlement{Hold: "job e 1", Job: &job, End: ledger.Commit, Kind: "job", Amounts: ledger.Amounts{ledger.Cost: 0.25 * usd}}
	h.settle(result)
	h.spent(0.25*usd, 0)
	h.run(perDay(usd), "r", 0.1*usd)
	h.settle(ledger.Settlement{Hold: "r", NewID: "job e 2", End: ledger.Commit, Kind: "job", Owner: ann, Amounts: ledger.Amounts{ledger.Cost: 0.1 * usd}})
	result.Hold = "job e 2"
	h.settle(result)
	h.spent(0.35*usd, 0)
}
