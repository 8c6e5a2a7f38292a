package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/ratelimit"
)

// Memory is a store in the memory of one process, driven by a clock in the hands
// of the test. It forgets nothing. Make one with [NewMemory].
type Memory struct {
	mu       sync.Mutex
	now      func() time.Time
	scopes   map[scopeID]*scope
	gateways map[string]int64
	resets   int64
	calls    int64
	fault    error
	deserted bool
}

type scopeID struct {
	org string
	ref ratelimit.Ref
}

type scope struct {
	// used is set once anything was charged or corrected; before that the scope
	// is as good as absent.
	used   bool
	state  ratelimit.State
	limit  ratelimit.Limit
	leases map[string]ratelimit.LeaseState
	// charged has the debt of each debtor that was charged last.
	charged map[string]ratelimit.Debt
}

var _ ratelimit.Store = (*Memory)(nil)

// NewMemory returns an empty store that takes its time from now.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, scopes: make(map[scopeID]*scope), gateways: make(map[string]int64)}
}

// SetFault makes every method fail with err, without effect, until it is called
// with nil.
func (m *Memory) SetFault(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = err
}

// SetDeserted makes beats tell that a gateway has not restored its counts.
func (m *Memory) SetDeserted(deserted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deserted = deserted
}

// Calls returns the number of exchanges so far, of any kind.
func (m *Memory) Calls() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// Forget drops everything, as a store without persistence does in a restart.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.scopes)
	clear(m.gateways)
}

// enter begins an exchange and returns the clock in Unix milliseconds.
func (m *Memory) enter() (int64, error) {
	m.calls++
	if m.fault != nil {
		return 0, m.fault
	}
	return m.now().UnixMilli(), nil
}

// Group implements [ratelimit.Store].
func (m *Memory) Group(string) string { return "" }

// Apply implements [ratelimit.Store].
func (m *Memory) Apply(_ context.Context, ops []ratelimit.Op) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.enter()
	if err != nil {
		return 0, err
	}
	for i := range ops {
		m.charge(&ops[i], now)
	}
	for i := range ops {
		op := &ops[i]
		rooms := m.rooms(op, now)
		if op.Admitted = 0; len(op.Draws) > 0 {
			draw(op, rooms)
		} else {
			take(op, rooms)
		}
		op.After = op.After[:0]
		for s, r := range rooms {
			if op.Admitted > 0 {
				r.scope.used, r.scope.limit, r.scope.state = true, op.Scopes[s].Limit, r.state
			}
			op.After = append(op.After, r.state)
		}
	}
	return now, nil
}

// charge charges the debts of op.
func (m *Memory) charge(op *ratelimit.Op, now int64) {
	for i := range op.Debts {
		d, s := op.Debts[i], m.scope(scopeID{op.Org, op.Scopes[i].Ref()})
		last := s.charged[op.Debtor]
		if d.Number == 0 || d.Number < last.Number {
			continue
		}
		if d.Number > last.Number {
			last = ratelimit.Debt{Number: d.Number}
		}
		state := s.state
		state.Advance(now)
		if d.Blind {
			d.Generation = state.Generation
		}
		if d.Generation >= state.Generation {
			due := ratelimit.Adjustment{State: ratelimit.State{Generation: d.Generation, Index: d.Index}, Delta: part(&last, &d)}
			for w := range ratelimit.Windows {
				if d.Blind || due.Delta[w] == 0 {
					due.State.Index[w] = min(d.Index[w], state.Index[w])
				}
			}
			adjust(&state, &due)
			if s.state = state; !s.used {
				s.used, s.limit = true, op.Scopes[i].Limit
			}
		}
		s.charged[op.Debtor] = last
	}
}

// part returns the part of d that is not in last, and adds it to last.
func part(last, d *ratelimit.Debt) (units [ratelimit.Windows]int64) {
	for w := range ratelimit.Windows {
		if d.Index[w] > last.Index[w] {
			last.Index[w], last.Units[w] = d.Index[w], 0
		}
		if d.Index[w] == last.Index[w] {
			units[w] = max(0, d.Units[w]-last.Units[w])
			last.Units[w] += units[w]
		}
	}
	return units
}

// room is one scope while an operation is tried on it.
type room struct {
	scope *scope
	// state is the scope's, with the windows open that the clock is in.
	state ratelimit.State
	limit ratelimit.Limit
}

func (m *Memory) rooms(op *ratelimit.Op, now int64) []*room {
	rooms := make([]*room, len(op.Scopes))
	for i := range op.Scopes {
		s := m.scope(scopeID{op.Org, op.Scopes[i].Ref()})
		rooms[i] = &room{scope: s, state: s.state, limit: op.Scopes[i].Limit}
		rooms[i].state.Advance(now)
	}
	return rooms
}

func (m *Memory) scope(id scopeID) *scope {
	s := m.scopes[id]
	if s == nil {
		s = &scope{leases: make(map[string]ratelimit.LeaseState), charged: make(map[string]ratelimit.Debt)}
		m.scopes[id] = s
	}
	return s
}

// left is the room in window w.
func (r *room) left(w int) int64 {
	q := r.limit.Quota(w)
	if q == 0 {
		q = ratelimit.MaxQuota
	}
	return q - r.state.Count[w]
}

func (r *room) charge(units [ratelimit.Windows]int64) {
	for w, n := range units {
		r.state.Count[w] += n
	}
}

// take admits calls one by one until one does not fit.
func take(op *ratelimit.Op, rooms []*room) {
	for range op.Calls {
		for i, r := range rooms {
			for w := range ratelimit.Windows {
				if op.Units(i) > r.left(w) {
					return
				}
			}
		}
		op.Admitted++
		for i, r := range rooms {
			units := op.Units(i)
			r.charge([ratelimit.Windows]int64{units, units, units})
		}
	}
}

// draw admits a leasing call, and grants it the wanted permits within bounds.
func draw(op *ratelimit.Op, rooms []*room) {
	for i := range op.Draws {
		op.Draws[i].Granted = [ratelimit.Windows]int64{}
	}
	for i, r := range rooms {
		for w, need := range op.Draws[i].Need {
			if need > 0 && need > r.left(w) {
				return
			}
		}
	}
	op.Admitted = 1
	for i, r := range rooms {
		d := &op.Draws[i]
		r.charge(d.Need)
		lease := ratelimit.LeaseState{Gateway: op.Gateway, Index: r.state.Index, Held: d.Held}
		for w, want := range d.Want {
			d.Granted[w] = max(0, min(want, floor(r.left(w)+d.Held[w], op.Divisor)-d.Held[w]))
			lease.Held[w] += d.Granted[w]
		}
		r.charge(d.Granted)
		r.scope.leases[op.Gateway] = lease
	}
}

// floor is a divided by b, which is positive, rounded down.
func floor(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

// Adjust implements [ratelimit.Store].
func (m *Memory) Adjust(_ context.Context, org string, adjustments []ratelimit.Adjustment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.enter()
	if err != nil {
		return err
	}
	for i := range adjustments {
		a := &adjustments[i]
		s := m.scope(scopeID{org, a.Ref})
		before := s.state
		before.Advance(now)
		after := before
		adjust(&after, a)
		if after != before {
			if !s.used {
				s.used, s.limit = true, a.Limit
			}
			s.state = after
		}
		if a.Gateway != "" && s.used {
			s.leases[a.Gateway] = ratelimit.LeaseState{Gateway: a.Gateway, Index: after.Index, Held: a.Held}
		}
	}
	return nil
}

func adjust(s *ratelimit.State, a *ratelimit.Adjustment) {
	if a.State.Generation < s.Generation {
		return
	}
	s.Generation = a.State.Generation
	for w := range ratelimit.Windows {
		if a.State.Index[w] > s.Index[w] {
			s.Index[w], s.Count[w] = a.State.Index[w], 0
		}
		if a.State.Index[w] == s.Index[w] {
			s.Count[w] = max(0, max(s.Count[w], a.State.Count[w])+a.Delta[w])
		}
	}
}

// Reset implements [ratelimit.Store].
func (m *Memory) Reset(_ context.Context, org string, ref ratelimit.Ref) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.enter()
	if err != nil {
		return err
	}
	m.resets++
	for id, s := range m.scopes {
		if id.org == org && s.used && (ref == ratelimit.Ref{} || ref == id.ref) {
			s.state = ratelimit.State{Generation: max(now, s.state.Generation+1)}
			s.state.Advance(now)
		}
	}
	return nil
}

// Leases implements [ratelimit.Store].
func (m *Memory) Leases(_ context.Context, org string, day int64, scopes []ratelimit.Ref) ([][]ratelimit.LeaseState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.enter(); err != nil {
		return nil, err
	}
	leases := make([][]ratelimit.LeaseState, len(scopes))
	for i, ref := range scopes {
		for gateway, l := range m.scope(scopeID{org, ref}).leases {
			if _, alive := m.gateways[gateway]; alive && l.Index[2] == day {
				leases[i] = append(leases[i], l)
			}
		}
		slices.SortFunc(leases[i], func(a, b ratelimit.LeaseState) int { return strings.Compare(a.Gateway, b.Gateway) })
	}
	return leases, nil
}

// Snapshot implements [ratelimit.Store].
func (m *Memory) Snapshot(_ context.Context, org string) (ratelimit.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.enter()
	if err != nil {
		return ratelimit.Snapshot{}, err
	}
	snap := ratelimit.Snapshot{Now: now}
	for id, s := range m.scopes {
		if id.org != org || !s.used {
			continue
		}
		shown := ratelimit.ScopeState{Ref: id.ref, Limit: s.limit, State: s.state}
		if shown.State.End(2) <= snap.Now {
			continue // kept from yesterday
		}
		shown.State.Advance(snap.Now)
		for _, l := range s.leases {
			if l.Index[2] == shown.State.Index[2] {
				shown.Leases = append(shown.Leases, l)
			}
		}
		slices.SortFunc(shown.Leases, func(a, b ratelimit.LeaseState) int { return strings.Compare(a.Gateway, b.Gateway) })
		snap.Scopes = append(snap.Scopes, shown)
	}
	slices.SortFunc(snap.Scopes, func(a, b ratelimit.ScopeState) int {
		return strings.Compare(a.Ref.String(), b.Ref.String())
	})
	return snap, nil
}

// Restore implements [ratelimit.Store]; others are not waited for.
func (m *Memory) Restore(ctx context.Context, _ string, _ time.Duration, adjust func(context.Context) error) error {
	return adjust(ctx)
}

// Heartbeat implements [ratelimit.Store].
func (m *Memory) Heartbeat(_ context.Context, gateway string, within time.Duration) (ratelimit.HeartbeatResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.enter()
	if err != nil {
		return ratelimit.HeartbeatResult{}, err
	}
	m.gateways[gateway] = now
	p := ratelimit.HeartbeatResult{Resets: m.resets, GatewayLost: m.deserted}
	for _, seen := range m.gateways {
		if seen > now-within.Milliseconds() {
			p.Live++
		}
	}
	return p, nil
}
