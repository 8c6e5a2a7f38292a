package ratelimit_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/limits/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manual is a clock in the hands of a test.
type manual struct {
	mu  sync.Mutex
	now time.Time
}

// newManual starts 18 s into a minute, 40 minutes into an hour.
func newManual() *manual {
	return &manual{now: time.Date(2027, 3, 14, 22, 40, 18, 0, time.UTC)}
}

func (c *manual) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *manual) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newLimiter returns a limiter on a model store that shares its clock.
func newLimiter(t testing.TB, change func(*ratelimit.Config)) (*ratelimit.Limiter, *storetest.Memory, *manual) {
	t.Helper()
	clock := newManual()
	store := storetest.NewMemory(clock.Now)
	return limiterOn(t, store, clock.Now, change), store, clock
}

func limiterOn(t testing.TB, store ratelimit.Store, now func() time.Time, change func(*ratelimit.Config)) *ratelimit.Limiter {
	t.Helper()
	config := ratelimit.DefaultConfig()
	config.Timeout = 5 * time.Second
	if change != nil {
		change(&config)
	}
	l, err := ratelimit.New(config, ratelimit.Deps{Store: store, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(t testing.TB, l *ratelimit.Limiter, tk ratelimit.Take) ratelimit.Decision {
	t.Helper()
	d, err := l.Take(t.Context(), tk)
	if err != nil {
		t.Fatalf("Take: %v", err)
	}
	return d
}

// tiny is a call of a caller with five calls a minute.
func tiny() ratelimit.Take {
	return ratelimit.Take{Org: "org_a", Class: ratelimit.ClassRead, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: "k1", Limit: ratelimit.Limit{Minute: 5, Hour: 100}},
		{Kind: ratelimit.KindTeam, ID: "t1"},
		{Kind: ratelimit.KindOrg, ID: "org_a", Limit: ratelimit.Limit{Minute: 1000, Day: 90}},
	}}
}

func TestSixthCallIsRefused(t *testing.T) {
	l, _, clock := newLimiter(t, nil)
	for i := range int64(5) {
		d := take(t, l, tiny())
		want := ratelimit.Decision{Allowed: true, Source: ratelimit.SourceRedis, Windows: []ratelimit.Window{
			{Name: "minute", Limit: 5, Remaining: 4 - i, Size: time.Minute, Reset: 42 * time.Second},
			{Name: "hour", Limit: 100, Remaining: 99 - i, Size: time.Hour, Reset: 19*time.Minute + 42*time.Second},
			{Name: "day", Limit: 90, Remaining: 89 - i, Size: 24 * time.Hour, Reset: 79*time.Minute + 42*time.Second},
		}}
		if diff := cmp.Diff(want, d); diff != "" {
			t.Fatalf("call %d (-want +got):\n%s", i+1, diff)
		}
	}
	d := take(t, l, tiny())
	wantViolated := []ratelimit.Violation{{
		Scope: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k1"}, Window: "minute", Name: "minute", Limit: 5, Reset: 42 * time.Second,
	}}
	if diff := cmp.Diff(wantViolated, d.Violated); diff != "" || d.Allowed {
		t.Errorf("call 6: allowed = %v, violated (-want +got):\n%s", d.Allowed, diff)
	}
	h := make(http.Header)
	d.WriteHeaders(h)
	wantHeader := http.Header{
		"Ratelimit":        {`"minute";r=0;t=42, "hour";r=95;t=1182, "day";r=85;t=4782`},
		"Ratelimit-Policy": {`"minute";q=5;w=60, "hour";q=100;w=3600, "day";q=90;w=86400`},
		"Retry-After":      {"42"},
	}
	if diff := cmp.Diff(wantHeader, h); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	clock.Add(42*time.Second - time.Millisecond)
	if d := take(t, l, tiny()); d.Allowed {
		t.Error("a call 1 ms before Retry-After passed")
	} else if got := d.RetryAfterSeconds(); got != 1 {
		t.Errorf("1 ms before the reset RetryAfterSeconds = %d, want 1", got)
	}
	clock.Add(time.Millisecond)
	if d := take(t, l, tiny()); !d.Allowed {
		t.Errorf("the call after Retry-After was refused: %+v", d.Violated)
	}
}

func TestTakeEdges(t *testing.T) {
	key := func(l ratelimit.Limit) []ratelimit.Scope {
		return []ratelimit.Scope{{Kind: ratelimit.KindKey, ID: "k", Limit: l}}
	}
	for _, tt := range []struct {
		name string
		take ratelimit.Take
		want ratelimit.Decision
		err  error
	}{
		{
			name: "exempt",
			take: ratelimit.Take{Org: "o", Scopes: key(ratelimit.Limit{})},
			want: ratelimit.Decision{Allowed: true, Source: ratelimit.SourceNone},
		},
		{
			name: "no scopes",
			take: ratelimit.Take{Org: "o"},
			want: ratelimit.Decision{Allowed: true, Source: ratelimit.SourceNone},
		},
		{
			name: "cost larger than the quota",
			take: ratelimit.Take{Org: "o", Scopes: key(ratelimit.Limit{Hour: 3}), Cost: 4},
			want: ratelimit.Decision{
				Source: ratelimit.SourceRedis,
				Windows: []ratelimit.Window{
					{Name: "hour", Limit: 3, Remaining: 3, Size: time.Hour, Reset: 1182 * time.Second},
				},
				Violated: []ratelimit.Violation{{
					Scope: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k"}, Window: "hour", Name: "hour", Limit: 3,
					Reset: 1182 * time.Second,
				}},
				RetryAfter: 1182 * time.Second,
			},
		},
		{
			name: "a class without room",
			take: ratelimit.Take{Org: "o", Scopes: []ratelimit.Scope{{
				Kind: ratelimit.KindClass, ID: "creates/team/research", Limit: ratelimit.Limit{Hour: 3}, Cost: 4, Policy: "creates",
			}}},
			want: ratelimit.Decision{
				Source: ratelimit.SourceRedis,
				Windows: []ratelimit.Window{
					{Name: "creates-hour", Limit: 3, Remaining: 3, Size: time.Hour, Reset: 1182 * time.Second},
				},
				Violated: []ratelimit.Violation{{
					Scope: ratelimit.Ref{Kind: ratelimit.KindClass, ID: "creates/team/research"}, Window: "hour", Name: "creates-hour", Limit: 3,
					Reset: 1182 * time.Second,
				}},
				RetryAfter: 1182 * time.Second,
			},
		},
		{name: "no organisation", take: ratelimit.Take{Scopes: key(ratelimit.Limit{Day: 1})}, err: ratelimit.ErrInvalid},
		{name: "braces", take: ratelimit.Take{Org: "a{b}", Scopes: key(ratelimit.Limit{Day: 1})}, err: ratelimit.ErrInvalid},
		{name: "negative cost", take: ratelimit.Take{Org: "o", Cost: -1, Scopes: key(ratelimit.Limit{Day: 1})}, err: ratelimit.ErrInvalid},
		{name: "negative quota", take: ratelimit.Take{Org: "o", Scopes: key(ratelimit.Limit{Day: -1})}, err: ratelimit.ErrInvalid},
		{
			name: "unknown kind",
			take: ratelimit.Take{Org: "o", Scopes: []ratelimit.Scope{{Kind: "x", ID: "k"}}},
			err:  ratelimit.ErrInvalid,
		},
		{
			name: "a scope twice",
			take: ratelimit.Take{Org: "o", Scopes: append(key(ratelimit.Limit{Day: 1}), key(ratelimit.Limit{Day: 2})...)},
			err:  ratelimit.ErrInvalid,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, store, _ := newLimiter(t, nil)
			got, err := l.Take(t.Context(), tt.take)
			if !errors.Is(err, tt.err) {
				t.Errorf("error = %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if tt.err != nil && store.Calls() != 0 {
				t.Errorf("an invalid call reached the store")
			}
		})
	}
}

func TestCancelledCallerIsCountedAndAnswered(t *testing.T) {
	l, _, _ := newLimiter(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, err := l.Take(ctx, tiny())
	if err != nil || !d.Allowed {
		t.Errorf("Take with a cancelled context = %+v, %v; want it allowed", d, err)
	}
	if got := take(t, l, tiny()).Windows[0].Remaining; got != 3 {
		t.Errorf("remaining after the second call = %d, want 3", got)
	}
}

// slow lets exchanges wait until the test lets them through.
type slow struct {
	ratelimit.Store
	arrived chan int
	proceed chan struct{}
	groups  func(org string) string
}

func (s *slow) Group(org string) string { return s.groups(org) }

func (s *slow) Apply(ctx context.Context, ops []ratelimit.Op) (int64, error) {
	calls := 0
	for _, op := range ops {
		calls += int(op.Calls)
	}
	s.arrived <- calls
	<-s.proceed
	return s.Store.Apply(ctx, ops)
}

func TestGroupCommit(t *testing.T) {
	const callers, quota = 40, 25
	for _, tt := range []struct {
		name    string
		orgs    int
		groups  func(string) string
		flights int
	}{
		{"one organisation", 1, func(string) string { return "" }, 1},
		{"several on one node", 4, func(string) string { return "" }, 1},
		{"several on a cluster", 4, func(org string) string { return org }, 1},
		{"several flights", 4, func(org string) string { return org }, 3},
		{"flights of one group", 2, func(string) string { return "" }, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := newManual()
			store := &slow{
				Store: storetest.NewMemory(clock.Now), groups: tt.groups,
				arrived: make(chan int, callers), proceed: make(chan struct{}),
			}
			l := limiterOn(t, store, clock.Now, func(c *ratelimit.Config) { c.Commit.MaxInFlight = tt.flights })
			var admitted [4]atomic.Int64
			remaining := make(chan int64, callers*tt.orgs)
			var wg sync.WaitGroup
			for i := range callers * tt.orgs {
				org := i % tt.orgs
				wg.Go(func() {
					d, err := l.Take(context.Background(), ratelimit.Take{
						Org:    string(rune('a' + org)),
						Scopes: []ratelimit.Scope{{Kind: ratelimit.KindKey, ID: "k", Limit: ratelimit.Limit{Minute: quota}}},
					})
					if err != nil {
						t.Errorf("Take: %v", err)
						return
					}
					if d.Allowed {
						admitted[org].Add(1)
						remaining <- d.Windows[0].Remaining
					}
				})
			}
			go func() {
				for range store.arrived {
					store.proceed <- struct{}{}
				}
			}()
			wg.Wait()
			close(store.arrived)
			close(remaining)
			for org := range tt.orgs {
				if got := admitted[org].Load(); got != quota {
					t.Errorf("organisation %d: admitted %d of %d, want %d", org, got, callers, quota)
				}
			}
			// Every value of remaining is told exactly once to each organisation:
			// concurrent calls see the count as if they had come one by one.
			seen := make(map[int64]int)
			for r := range remaining {
				seen[r]++
			}
			for r := range int64(quota) {
				if seen[r] != tt.orgs {
					t.Errorf("remaining %d was told %d times, want %d", r, seen[r], tt.orgs)
				}
			}
		})
	}
}

func TestGroupsForm(t *testing.T) {
	clock := newManual()
	store := &slow{
		Store: storetest.NewMemory(clock.Now), groups: func(string) string { return "" },
		arrived: make(chan int), proceed: make(chan struct{}),
	}
	l := limiterOn(t, store, clock.Now, func(c *ratelimit.Config) { c.Commit = ratelimit.CommitConfig{MaxInFlight: 1, MaxBatch: 10} })
	var wg sync.WaitGroup
	call := func() { wg.Go(func() { _, _ = l.Take(context.Background(), tiny()) }) }
	call()
	if got := <-store.arrived; got != 1 {
		t.Fatalf("a lone call travelled in a group of %d", got)
	}
	for range 13 {
		call()
	}
	waitQueued(t, l, 13)
	store.proceed <- struct{}{}
	for _, want := range []int{10, 3} {
		if got := <-store.arrived; got != want {
			t.Errorf("group of %d, want %d", got, want)
		}
		store.proceed <- struct{}{}
	}
	wg.Wait()
}

// waitQueued waits until n calls are queued behind an exchange.
func waitQueued(t *testing.T, l *ratelimit.Limiter, n int) {
	t.Helper()
	for l.Queued() != n {
		if t.Context().Err() != nil {
			t.Fatalf("%d calls are queued, want %d", l.Queued(), n)
		}
		runtime.Gosched()
	}
}
