package ratelimit

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at returns the state of a scope at a minute of the first day, with the same
// count in all windows.
func at(minute, count int64) *State {
	return &State{Index: [Windows]int64{minute, minute / 60, 0}, Count: [Windows]int64{count, count, count}}
}

// told returns the answer given at a second of the first day, 100 ms after it was
// asked for.
func told(second int64) answer {
	now := time.Duration(second) * time.Second
	return answer{now: second * 1000, sent: now - 100*time.Millisecond, got: now}
}

func TestLearnKeepsTheLatest(t *testing.T) {
	limit := Limit{Minute: 10}
	a := &account{}
	a.learn(limit, at(5, 3), told(310))
	a.learn(limit, at(5, 2), told(309)) // overtaken
	if got := a.state.Count[0]; got != 3 {
		t.Errorf("count = %d after an older answer, want 3", got)
	}
	a.learn(limit, at(5, 4), told(310)) // the same millisecond: order unknown
	a.learn(limit, at(5, 3), told(310))
	if got := a.state.Count[0]; got != 4 {
		t.Errorf("count = %d after answers of one millisecond, want the larger", got)
	}
	if got, want := a.ends[0], 360*time.Second-100*time.Millisecond; got != want {
		t.Errorf("the minute ends at %v, want %v: not later than in truth", got, want)
	}
	if got, want := a.reset(0, 350*time.Second), 10*time.Second; got != want {
		t.Errorf("reset = %v, want %v: not earlier than in truth", got, want)
	}
}

func TestPermitsBelongToTheirWindows(t *testing.T) {
	limit := Limit{Minute: 100, Hour: 1000}
	granted := &Draw{Want: [Windows]int64{9, 9, 9}, Granted: [Windows]int64{9, 9, 9}}
	a := &account{}
	a.learn(limit, at(5, 20), told(310))
	a.receive(at(5, 20), granted, true, 0)
	want := [Windows]int64{9, 9, 9}
	if diff := cmp.Diff(want, a.held); diff != "" {
		t.Fatalf("held (-want +got):\n%s", diff)
	}

	a.learn(limit, at(6, 30), told(361))
	want[0] = 0
	if diff := cmp.Diff(want, a.held); diff != "" {
		t.Errorf("held after the minute turned (-want +got):\n%s", diff)
	}

	// An answer from before the turn arrives late.
	a.receive(at(5, 21), granted, true, 0)
	want = [Windows]int64{0, 18, 18}
	if diff := cmp.Diff(want, a.held); diff != "" {
		t.Errorf("held after a late grant (-want +got):\n%s", diff)
	}

	// A call that took permits before the turn gives them back after it.
	a.putBack(&drawn{index: at(5, 0).Index, units: [Windows]int64{2, 2, 2}})
	want = [Windows]int64{0, 20, 20}
	if diff := cmp.Diff(want, a.held); diff != "" {
		t.Errorf("held after a late return (-want +got):\n%s", diff)
	}

	reset := at(6, 1)
	reset.Generation = 7
	a.learn(limit, reset, told(370))
	a.putBack(&drawn{index: at(6, 0).Index, units: [Windows]int64{2, 2, 2}})
	a.receive(at(6, 30), granted, true, 0)
	if diff := cmp.Diff([Windows]int64{}, a.held); diff != "" {
		t.Errorf("held after a reset (-want +got):\n%s", diff)
	}
}

// The number of accounts is a total, however few organisations they belong to;
// one that is full gives way to others.
func TestBookSizeIsTotal(t *testing.T) {
	const most = 2000
	b := newAccountTable(most)
	open := func(org string, i int, held int64) *account {
		s := b.shard(org)
		defer s.mu.Unlock()
		a := b.open(s, org, Ref{Kind: KindKey, ID: strconv.Itoa(i)}, tick(i))
		a.held[0] = held
		return a
	}
	known := func(org string) (n int) {
		b.each(func(a *account) bool {
			if a.org == org {
				n++
			}
			return true
		})
		return n
	}
	for i := range most {
		open("large", i, 0)
	}
	if got := known("large"); got != most {
		t.Errorf("one organisation has %d accounts, want %d", got, most)
	}
	for i := range 50 {
		open("small", most+i, 0)
	}
	if got, large := known("small"), known("large"); got != 50 || large != most-50 {
		t.Errorf("%d and %d accounts after another organisation came, want 50 and %d", got, large, most-50)
	}
}

// An account that holds permits is forgotten only if there is no other.
func TestPermitsAreForgottenLast(t *testing.T) {
	const most = sample / 2
	b := newAccountTable(most)
	open := func(i int, held int64) {
		s := b.shard("o")
		defer s.mu.Unlock()
		b.open(s, "o", Ref{Kind: KindKey, ID: strconv.Itoa(i)}, tick(i)).held[1] = held
	}
	for i := range most / 2 {
		open(i, 1) // the oldest
	}
	for i := range most / 2 {
		open(most+i, 0)
	}
	for i := range most / 2 {
		open(2*most+i, 1)
	}
	b.each(func(a *account) bool {
		if a.held == [Windows]int64{} {
			t.Errorf("account %s without permits was kept, one with permits forgotten", a.ref)
		}
		return true
	})
}
