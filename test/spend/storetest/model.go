package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// testModel holds a store against [Memory] in random histories of creates,
// changes, stops, deletes, lost answers, adjustments, time and new budgets. After
// each step both must say the same, and no ceiling may be passed that was not
// passed before, but by what only follows the platform.
func testModel(h *harness) {
	h.movable()
	run := 0
	rapid.Check(h.T, func(t *rapid.T) {
		run++
		m := &model{T: t, harness: h, org: fmt.Sprint("org-", run), now: start, latest: start}
		m.memory = NewMemory(func() time.Time { return m.now }, func(string) ledger.Zone { return h.zone })
		h.SetTime(m.now)
		h.in("UTC")
		m.both(func(s modelled) (any, error) { return nil, s.BeginRebuild(h.Context(), m.org, "t") })
		m.both(func(s modelled) (any, error) { return s.FinishRebuild(h.Context(), m.org, "t") })
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"create":  m.create,
			"change":  m.change,
			"run":     m.run,
			"settle":  m.settle,
			"dry run": m.dryRun,
			"adjust":  m.adjust,
			"advance": m.advance,
			"budget":  m.budget,
			"zone":    m.zone,
			"roll":    m.roll,
			"billed":  m.billed,
		})
	})
}

// modelled is the part of a [ledger.Store] that has a model.
type modelled interface {
	ledger.Accounts
	ledger.RollupStore
	BeginRebuild(ctx context.Context, org, token string) error
	FinishRebuild(ctx context.Context, org, token string) (bool, error)
}

// same leaves out what stores number as they like.
var same = cmp.Options{cmpopts.IgnoreFields(ledger.Record{}, "Version"), cmpopts.IgnoreFields(ledger.Outcome{}, "Epoch", "Sent"), cmpopts.IgnoreFields(ledger.State{}, "Zone", "Repairs", "Epoch"), cmpopts.EquateEmpty()}

// model is one history.
type model struct {
	*rapid.T

	harness *harness
	memory  *Memory
	org     string
	now     time.Time
	latest  time.Time // the clock may have stepped back since
	plan    ledger.Plan
	holds   []string // all there ever were
	made    int
	moved   bool // to another zone, or away from what was counted
}

// both runs a step on both stores and wants the same of both.
func (m *model) both(step func(s modelled) (any, error)) any {
	m.Helper()
	want, err1 := step(m.memory)
	got, err2 := step(m.harness.Store)
	if err1 != nil || err2 != nil {
		m.Fatalf("model: %v; store: %v", err1, err2)
	}
	if diff := cmp.Diff(want, got, same); diff != "" {
		m.Fatalf("the store says something else than the model (-model +store):\n%s", diff)
	}
	return got
}

func (m *model) show() ledger.State {
	return m.both(func(s modelled) (any, error) {
		state, err := s.Show(m.harness.Context(), m.org)
		// Which scopes it has that nothing is counted for is a store's own affair.
		state.Balances = slices.DeleteFunc(state.Balances, func(b ledger.Balance) bool { return b == ledger.Balance{Scope: b.Scope} })
		return state, err
	}).(ledger.State)
}

// check is run after every step.
func (m *model) check(t *rapid.T) {
	m.T = t
	state := m.show()
	if d := state.Differences(); len(d) > 0 {
		t.Fatalf("the sums differ from what they are sums of: %+v", d)
	}
	for _, b := range state.Balances {
		for i := range b.Committed {
			if b.Committed[i] < 0 || b.Reserved[i] < 0 {
				t.Fatalf("%s is negative: %+v", b.Scope, b)
			}
		}
		if b.Day < 0 || b.Month < 0 || b.Month < b.Day && !m.moved { // the month can begin before the day, or be corrected by more than it had
			t.Fatalf("%s has accrued %d today and %d this month", b.Scope, b.Day, b.Month)
		}
	}
}

var (
	owners = []ledger.Owner{{}, {Key: "zoe"}, {Team: "research", Key: "ann"}, {Team: "research", Key: "bob"}, {Team: "ops", Key: "cat"}}
	rates  = []int64{0, 1, 430_000, 1_990_000, 3_599_999, 7_200_001, 1_000_000_007}
)

// from is zero or a time in the last hours, when the rate of a resource may have changed.
func (m *model) from(t *rapid.T) time.Time {
	if rapid.Bool().Draw(t, "at once") {
		return time.Time{}
	}
	return m.now.Add(-time.Duration(rapid.Int64Range(-1000, 3*3600_000).Draw(t, "earlier")) * time.Millisecond)
}

func amounts(t *rapid.T) ledger.Amounts {
	a := whole(t)
	if rapid.Bool().Draw(t, "ends") {
		a[ledger.Sandboxes], a[ledger.Bounded] = 1, a[ledger.Burn]
	}
	return a
}

func whole(t *rapid.T) ledger.Amounts {
	return ledger.Amounts{
		rapid.SampledFrom(rates).Draw(t, "burn"), rapid.Int64Range(0, 8).Draw(t, "gpus"), rapid.Int64Range(0, 1).Draw(t, "pods"),
		rapid.Int64Range(0, 5).Draw(t, "workers"), rapid.Int64Range(0, 100).Draw(t, "volume"), rapid.SampledFrom(rates).Draw(t, "cost"),
	}
}

func (m *model) budget(t *rapid.T) {
	m.T = t
	draw := func(name string) ledger.Budget {
		limit := func(what string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, name+" "+what) }
		return ledger.Budget{
			PerHour: catalog.Money(limit("per_hour", 9_000_000)), PerDay: catalog.Money(limit("per_day", 90_000_000)),
			PerWeek: catalog.Money(limit("per_week", 300_000_000)), PerMonth: catalog.Money(limit("per_month", 900_000_000)),
			PerQuarter: catalog.Money(limit("per_quarter", 2_000_000_000)), Total: catalog.Money(limit("total", 4_000_000_000)), GPUs: limit("gpus", 20), Pods: limit("pods", 9),
			Workers: limit("workers", 20), VolumeGB: limit("volume_gb", 400), Sandboxes: limit("sandboxes", 6),
		}
	}
	m.plan = ledger.Plan{
		Org: draw("org"), Teams: map[string]ledger.Budget{"research": draw("research")}, Keys: map[string]ledger.Budget{"ann": draw("ann")},
		Horizon: rapid.SampledFrom([]ledger.Horizon{0, ledger.UntilPeriodEnd, ledger.Horizon(20 * time.Minute)}).Draw(t, "horizon"),
	}
}

// reserve reserves on both, and compares the admitted amounts with the ceilings.
func (m *model) reserve(r ledger.Reservation) ledger.Outcome {
	r.Limits, r.Horizon = limits(&m.plan, r.Owner), m.plan.Horizon
	out := m.both(func(s modelled) (any, error) { return s.Reserve(m.harness.Context(), m.org, &r) }).(ledger.Outcome)
	for i, levels := range out.Levels {
		for c, l := range levels {
			if limit := r.Limits[i][c]; out.Status == ledger.Admitted && !r.Free && limit > 0 && l.Needs > 0 && l.Sum() > limit {
				m.Fatalf("admitted past a ceiling: %+v of %d", l, limit)
			}
		}
	}
	return out
}

// dryRun simulates a call, makes it, and wants the simulation to have predicted the answers and the balances.
func (m *model) dryRun(t *rapid.T) {
	m.T, m.now = t, m.latest
	m.harness.SetTime(m.now)
	state := m.show()
	m.made++
	id := fmt.Sprint("h", len(m.holds))
	m.holds = append(m.holds, id)
	r := ledger.Reservation{Hold: id, Kind: "pod", Owner: rapid.SampledFrom(owners).Draw(t, "owner"), After: amounts(t)}
	s := ledger.Settlement{
		Hold: id, End: rapid.SampledFrom([]ledger.End{ledger.Release, ledger.Commit}).Draw(t, "end"), Kind: "pod", Owner: r.Owner,
		Resource: fmt.Sprint("r", m.made), Amounts: amounts(t),
	}
	switch {
	case rapid.Bool().Draw(t, "once"):
		s.Resource, s.WholeReservation = "", rapid.Bool().Draw(t, "full")
	case len(state.Resources) > 0 && rapid.Bool().Draw(t, "existing"):
		record := rapid.SampledFrom(state.Resources).Draw(t, "resource")
		r.Resource, r.Owner = record.ID, record.Owner
		r.Free = rapid.Bool().Draw(t, "free")
		s.Resource, s.Owner, s.Gone = record.ID, record.Owner, rapid.Bool().Draw(t, "gone")
	}
	dry := ledger.NewSimulation(state)
	quote := dry.Reserve(&m.plan, r)
	dry.Settle(&s)

	out := m.reserve(r)
	if admitted := out.Status == ledger.Admitted; admitted != (quote.Refused == nil) || !admitted && out.Status != ledger.Refused {
		t.Fatalf("the dry run is refused by %+v, the call has status %d", quote.Refused, out.Status)
	}
	for _, c := range quote.Ceilings {
		if got := out.Levels[slices.Index(r.Owner.Scopes(), c.Scope)][c.Index]; got != c.Level {
			t.Fatalf("%s: the dry run predicts %+v, the call has %+v", c.Name(), c.Level, got)
		}
	}
	if out.Status == ledger.Admitted {
		m.both(func(st modelled) (any, error) { return nil, st.Settle(m.harness.Context(), m.org, &s) })
	}
	after := m.both(func(st modelled) (any, error) { return st.Balances(m.harness.Context(), m.org, r.Owner) }).(ledger.State).Balances
	for i, b := range dry.Balances(r.Owner) {
		if s.Resource != "" {
			b.Accrued = after[i].Accrued // a commit also corrects the cost since the reservation
		}
		if b != after[i] {
			t.Fatalf("the dry run predicts %+v, after the call it is %+v", b, after[i])
		}
	}
}

func (m *model) create(t *rapid.T) {
	m.T = t
	id := fmt.Sprint("h", len(m.holds))
	if len(m.holds) > 0 && rapid.IntRange(0, 9).Draw(t, "repeat") == 0 {
		id = rapid.SampledFrom(m.holds).Draw(t, "hold")
	} else {
		m.holds = append(m.holds, id)
	}
	m.reserve(ledger.Reservation{Hold: id, Kind: "pod", Owner: rapid.SampledFrom(owners).Draw(t, "owner"), After: amounts(t)})
}

func (m *model) run(t *rapid.T) {
	m.T = t
	id := fmt.Sprint("h", len(m.holds))
	m.holds = append(m.holds, id)
	m.reserve(ledger.Reservation{Hold: id, Kind: "job", Owner: rapid.SampledFrom(owners).Draw(t, "owner"), After: ledger.Amounts{
		ledger.Cost: rapid.Int64Range(0, 20_000_000).Draw(t, "cost"),
	}})
}

func (m *model) change(t *rapid.T) {
	m.T = t
	id := fmt.Sprint("h", len(m.holds))
	m.holds = append(m.holds, id)
	r := ledger.Reservation{Hold: id, Kind: "pod", Resource: "unknown", Owner: rapid.SampledFrom(owners).Draw(t, "owner")}
	if known := m.show().Resources; len(known) > 0 {
		record := rapid.SampledFrom(known).Draw(t, "resource")
		r.Resource = record.ID
		if rapid.IntRange(0, 4).Draw(t, "stranger") > 0 {
			r.Owner = record.Owner
		}
	}
	if r.Free = rapid.Bool().Draw(t, "free"); !r.Free {
		r.After = amounts(t)
	}
	m.reserve(r)
}

func (m *model) settle(t *rapid.T) {
	m.T = t
	s := ledger.Settlement{
		End: ledger.End(rapid.IntRange(0, 2).Draw(t, "end")), Hold: "unheard-of", ResolveWithin: time.Minute, Kind: "pod",
		Owner: rapid.SampledFrom(owners).Draw(t, "owner"), Amounts: amounts(t), Gone: rapid.IntRange(0, 3).Draw(t, "gone") == 0, From: m.from(t),
	}
	if len(m.holds) > 0 {
		s.Hold = rapid.SampledFrom(m.holds).Draw(t, "hold")
	}
	m.made++
	s.Resource = fmt.Sprint("r", m.made)
	known := m.show()
	for _, h := range known.Holds {
		if h.ID == s.Hold && h.Resource != "" {
			s.Resource = h.Resource
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "once") {
	case 0:
		s.Resource, s.WholeReservation = "", rapid.Bool().Draw(t, "full")
	case 1:
		s.NewID = rapid.SampledFrom(append([]string{"unheard-of"}, m.holds...)).Draw(t, "as")
	}
	if len(known.Resources) > 0 && rapid.IntRange(0, 5).Draw(t, "other") == 0 {
		s.Resource = rapid.SampledFrom(known.Resources).Draw(t, "resource").ID
	}
	m.both(func(st modelled) (any, error) { return nil, st.Settle(m.harness.Context(), m.org, &s) })
	if s.End == ledger.Release {
		m.holds = append(m.holds, s.Hold+"-open") // there is one if the hold had taken over others
	}
}

func (m *model) adjust(t *rapid.T) {
	m.T = t
	a := ledger.Adjustment{Kind: "pod", Resource: "behind our back", Amounts: amounts(t), Gone: rapid.Bool().Draw(t, "gone"), From: m.from(t)}
	known := m.show().Resources
	if len(known) > 0 {
		a.Resource = rapid.SampledFrom(known).Draw(t, "resource").ID
	}
	stale := rapid.IntRange(0, 4).Draw(t, "stale") == 0
	m.both(func(s modelled) (any, error) {
		a := a
		state, err := s.Show(m.harness.Context(), m.org)
		if err != nil {
			return nil, err
		}
		for _, r := range state.Resources {
			if r.ID == a.Resource && !stale {
				a.Version = r.Version // each store numbers by itself
			}
		}
		return s.Adjust(m.harness.Context(), m.org, &a)
	})
}

// roll rolls up in both, and wants the same roll-ups of the last days.
func (m *model) roll(t *rapid.T) {
	m.T = t
	m.both(func(s modelled) (any, error) {
		h := ledger.History{Store: s, Retention: ledger.Retention{Hourly: 400, Daily: 400}}
		if err := h.RollUp(m.harness.Context(), m.org); err != nil {
			return nil, err
		}
		to := ledger.Daily.Start(m.now).Add(ledger.Daily.Length())
		q := ledger.Query{From: to.AddDate(0, 0, -3), To: to, Bucket: ledger.Daily, By: ledger.Dimension.Values("")}
		return h.Query(m.harness.Context(), m.org, &q, m.now)
	})
}

// billed corrects an hour of the last two days.
func (m *model) billed(t *rapid.T) {
	m.T, m.moved = t, true
	r := ledger.Rollup{
		Start: ledger.Hourly.Start(m.now).Add(-time.Duration(rapid.IntRange(0, 48).Draw(t, "hours")) * time.Hour),
		Item:  ledger.Item{Resource: "billed", Kind: "pod", Owner: rapid.SampledFrom(owners).Draw(t, "owner")},
		Micro: rapid.Int64Range(-5_000_000, 5_000_000).Draw(t, "micro"),
	}
	m.both(func(s modelled) (any, error) {
		at, err := s.RollupInput(m.harness.Context(), m.org)
		if err != nil || at.Version == 0 {
			return false, err
		}
		return s.Post(m.harness.Context(), m.org, &ledger.Posting{
			Version: at.Version, Until: at.Until, Retention: ledger.Retention{Hourly: 400, Daily: 400}, Billed: []ledger.Rollup{r},
		})
	})
}

// zone puts the organisation into another zone.
func (m *model) zone(t *rapid.T) {
	m.T, m.moved = t, true
	m.harness.in(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Pacific/Apia", "Africa/Cairo"}).Draw(t, "zone"))
}

func (m *model) advance(t *rapid.T) {
	m.T = t
	ms := rapid.OneOf(rapid.Int64Range(-2000, 10_000), rapid.Int64Range(0, 90*60_000), rapid.Int64Range(0, 40*24*3600_000)).Draw(t, "ms")
	m.now = m.now.Add(time.Duration(ms) * time.Millisecond)
	if m.now.After(m.latest) {
		m.latest = m.now
	}
	m.harness.SetTime(m.now)
}
