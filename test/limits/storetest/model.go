package storetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// testModel plays random operations on the store and on the model, and compares
// every field of every answer. The model takes the time the store reports, so
// that a store whose clock cannot be moved can be compared as well.
func testModel(h *harness) {
	round := 0
	rapid.Check(h.T, func(t *rapid.T) {
		// rapid plays many rounds on one store: each has its own organisations.
		round++
		m := &modelRun{t: t, h: h, clock: start(), round: round, debts: make(map[debtID]ratelimit.Debt)}
		m.model = NewMemory(func() time.Time { return m.told })
		if h.SetTime != nil {
			h.SetTime(m.clock)
		}
		t.Repeat(map[string]func(*rapid.T){
			"apply":  m.apply,
			"adjust": m.adjust,
			"reset":  m.reset,
			"wait":   m.wait,
			"":       m.compare,
		})
	})
}

type modelRun struct {
	t     *rapid.T
	h     *harness
	model *Memory
	round int
	// clock is the time of a movable clock, told the store's last.
	clock, told time.Time
	last        []ratelimit.State
	// debts are the latest ones, number is the Number of the latest.
	debts  map[debtID]ratelimit.Debt
	number int64
}

func (m *modelRun) org(t *rapid.T) string {
	return fmt.Sprintf("round-%d-%s", m.round, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "org"))
}

// scopes draws one to three different scopes.
func (m *modelRun) scopes(t *rapid.T) []ratelimit.Scope {
	all := []ratelimit.Ref{{Kind: "key", ID: "k1"}, {Kind: "key", ID: "k2"}, {Kind: "team", ID: "t"}, {Kind: "org", ID: "o"}}
	refs := rapid.Permutation(all).Draw(t, "refs")[:rapid.IntRange(1, 3).Draw(t, "scopes")]
	scopes := make([]ratelimit.Scope, len(refs))
	quota := rapid.SampledFrom([]int64{0, 1, 3, 10, 50})
	for i, ref := range refs {
		limit := ratelimit.Limit{Minute: quota.Draw(t, "minute"), Hour: quota.Draw(t, "hour"), Day: quota.Draw(t, "day")}
		scopes[i] = ratelimit.Scope{Kind: ref.Kind, ID: ref.ID, Limit: limit, Cost: rapid.Int64Range(0, 3).Draw(t, "scope cost")}
	}
	return scopes
}

func triple(t *rapid.T, label string, low, high int64) [ratelimit.Windows]int64 {
	var out [ratelimit.Windows]int64
	for w := range out {
		out[w] = rapid.Int64Range(low, high).Draw(t, label)
	}
	return out
}

func (m *modelRun) op(t *rapid.T, org string) ratelimit.Op {
	op := ratelimit.Op{Org: org, Scopes: m.scopes(t), Calls: 1, Cost: rapid.Int64Range(1, 4).Draw(t, "cost")}
	if rapid.Bool().Draw(t, "exact") {
		op.Calls = rapid.Int64Range(1, 5).Draw(t, "calls")
		if rapid.IntRange(0, 4).Draw(t, "only debts") == 0 {
			op.Calls = 0
		}
		return op
	}
	op.Divisor = rapid.Int64Range(1, 8).Draw(t, "divisor")
	op.Gateway = rapid.SampledFrom([]string{"gw-1", "gw-2"}).Draw(t, "gateway")
	for range op.Scopes {
		op.Draws = append(op.Draws, ratelimit.Draw{
			Need: triple(t, "need", 0, 3), Want: triple(t, "want", 0, 9), Held: triple(t, "held", 0, 2),
		})
	}
	return op
}

// owe adds debts to op: new ones, and ones that the store has had before.
func (m *modelRun) owe(t *rapid.T, op *ratelimit.Op) {
	if len(m.last) == 0 || !rapid.Bool().Draw(t, "debts") {
		return
	}
	op.Debtor = rapid.SampledFrom([]string{"gw-1", "gw-2"}).Draw(t, "debtor")
	op.Debts = make([]ratelimit.Debt, len(op.Scopes))
	for i := range op.Debts {
		id := debtID{op.Debtor, op.Org, op.Scopes[i].Ref()}
		switch old := m.debts[id]; rapid.SampledFrom([]string{"none", "old", "new"}).Draw(t, "debt") {
		case "old":
			if old.Index[2] == m.last[0].Index[2] { // the store forgets the number with the day
				op.Debts[i] = old
				for w, more := range triple(t, "more", -2, 2) {
					op.Debts[i].Units[w] = max(0, old.Units[w]+more)
				}
				m.debts[id] = op.Debts[i]
			}
		case "new":
			m.number++
			d := ratelimit.Debt{Number: m.number, Index: m.last[0].Index, Units: triple(t, "units", 0, 4), Blind: rapid.Bool().Draw(t, "blind")}
			d.Index[0] += rapid.Int64Range(-1, 1).Draw(t, "minute off")
			d.Generation = max(0, m.last[0].Generation+rapid.Int64Range(-1, 1).Draw(t, "generation off"))
			m.debts[id], op.Debts[i] = d, d
		}
	}
}

// debtID names the debts of one process to one scope.
type debtID struct {
	debtor, org string
	ref         ratelimit.Ref
}

func (m *modelRun) apply(t *rapid.T) {
	org := m.org(t)
	var got, want []ratelimit.Op
	for range rapid.IntRange(1, 4).Draw(t, "ops") {
		op := m.op(t, org)
		if m.h.Store.Group("") == m.h.Store.Group(org) {
			op.Org = m.org(t) // a store on one node takes any mixture
		}
		m.owe(t, &op)
		got = append(got, op)
		op.Draws = append([]ratelimit.Draw(nil), op.Draws...)
		want = append(want, op)
	}
	now, err := m.h.Store.Apply(m.h.Context(), got)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	m.told = time.UnixMilli(now)
	if _, err := m.model.Apply(m.h.Context(), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("Apply at %v (-model +store):\n%s", m.told.UTC(), diff)
	}
	m.last = got[len(got)-1].After
}

func (m *modelRun) adjust(t *rapid.T) {
	if len(m.last) == 0 {
		t.Skip("nothing to correct yet")
	}
	a := ratelimit.Adjustment{
		Ref:   m.scopes(t)[0].Ref(),
		State: m.last[0],
		Delta: triple(t, "delta", -4, 4),
		Limit: ratelimit.Limit{Minute: 7},
	}
	a.State.Count = triple(t, "least", 0, 12)
	a.State.Index[0] += rapid.Int64Range(-1, 1).Draw(t, "minute off")
	a.State.Generation += rapid.Int64Range(-1, 1).Draw(t, "generation off")
	if a.State.Generation < 0 {
		a.State.Generation = 0
	}
	if rapid.Bool().Draw(t, "lease") {
		a.Gateway, a.Held = "gw-1", triple(t, "held", 0, 5)
	}
	org := m.org(t)
	m.steady(t, org)
	if err := m.h.Store.Adjust(m.h.Context(), org, []ratelimit.Adjustment{a}); err != nil {
		t.Fatalf("Adjust: %v", err)
	}
	if err := m.model.Adjust(m.h.Context(), org, []ratelimit.Adjustment{a}); err != nil {
		t.Fatal(err)
	}
}

// calm is how far from the end of a minute a store with a clock of its own is
// compared where it does not tell the time it acted at.
const calm = 3 * time.Second

// steady waits, at most for calm, until no minute is about to end: a store that
// does not say when it acted must act in the minute the model takes it to be.
func (m *modelRun) steady(t *rapid.T, org string) {
	for m.h.SetTime == nil {
		got, err := m.h.Store.Snapshot(m.h.Context(), org)
		if err != nil {
			t.Fatalf("Show: %v", err)
		}
		m.told = time.UnixMilli(got.Now)
		left := m.told.Truncate(time.Minute).Add(time.Minute).Sub(m.told)
		if left > calm {
			return
		}
		<-time.After(left)
	}
}

func (m *modelRun) reset(t *rapid.T) {
	if m.h.SetTime == nil {
		t.Skip("a new generation is named after a clock that cannot be read at the same instant")
	}
	org, ref := m.org(t), m.scopes(t)[0].Ref()
	if rapid.Bool().Draw(t, "all") {
		ref = ratelimit.Ref{}
	}
	if err := m.h.Store.Reset(m.h.Context(), org, ref); err != nil {
		t.Fatalf("Reset: %v", err)
	}
	if err := m.model.Reset(m.h.Context(), org, ref); err != nil {
		t.Fatal(err)
	}
}

// wait moves the clock on, or sometimes back.
func (m *modelRun) wait(t *rapid.T) {
	if m.h.SetTime == nil {
		t.Skip("the clock of this store cannot be moved")
	}
	step := rapid.SampledFrom([]time.Duration{
		time.Millisecond, 700 * time.Millisecond, 39 * time.Second, time.Minute, 20 * time.Minute, 80 * time.Minute,
		-time.Second, -2 * time.Minute, -time.Hour,
	}).Draw(t, "step")
	m.clock = m.clock.Add(step)
	m.h.SetTime(m.clock)
	m.told = m.clock
}

// shown leaves the listed leases out of a comparison where the clock moves: which
// of them are still listed after it stepped back past midnight does
// not matter.
func (m *modelRun) shown() cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool {
		return m.h.SetTime != nil && p.Last().String() == ".Leases"
	}, cmp.Ignore())
}

// compare checks the operators' view.
func (m *modelRun) compare(t *rapid.T) {
	for _, name := range []string{"a", "b"} {
		org := fmt.Sprintf("round-%d-%s", m.round, name)
		got, err := m.h.Store.Snapshot(m.h.Context(), org)
		if err != nil {
			t.Fatalf("Show: %v", err)
		}
		m.told = time.UnixMilli(got.Now)
		want, err := m.model.Snapshot(m.h.Context(), org)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Scopes, got.Scopes, m.shown()); diff != "" {
			t.Fatalf("Show at %v (-model +store):\n%s", m.told.UTC(), diff)
		}
	}
}
