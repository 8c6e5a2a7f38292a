package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Deps are the live things a Catalog needs.
type Deps struct {
	// Fetch reads an organisation's lists from the platform, with that
	// organisation's credential. last is the list in use, nil for none.
	// The Parse functions read the answers. It is called by several
	// goroutines at once; required.
	Fetch func(ctx context.Context, org string, last *Snapshot) (Lists, error)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger hears when reads begin to fail, and when they succeed again; nil is
	// silence.
	Logger *slog.Logger
}

// ErrUnavailable is wrapped by the errors of Snapshot: there is no price list
// that may be believed.
var ErrUnavailable = errors.New("no current price list")

// Catalog keeps one price list per organisation. It may be used from several
// goroutines at once.
type Catalog struct {
	cfg    Config
	rates  Rates
	deps   Deps
	flight singleflight.Group
	stale  chan struct{} // wakes Run for a list that is out of date

	mu     sync.Mutex // guards the fields below
	orgs   map[string]*record
	latest *Snapshot // read for any organisation
}

// record is the state of one organisation's list.
type record struct {
	last    *Snapshot // nil until the first good read
	tried   time.Time // when the last read began
	lastErr error     // why the last read failed; nil when it did not
	failed  int       // reads that have failed since the last good one
	raised  []charged // the prices in last that the platform charged above its list
	charged time.Time // when the platform last charged more than the list, zero for never
}

// firstRetry is how long after a failure the list is read again. The pause doubles with
// each further failure, up to Config.Retry.
const firstRetry = 100 * time.Millisecond

// resting reports whether a read has failed so lately that there is none at now.
func (r *record) resting(now time.Time, most time.Duration) bool {
	return r.failed > 0 && now.Sub(r.tried) < min(most, firstRetry<<min(r.failed-1, 16))
}

// Status tells how an organisation's price list is doing.
type Status struct {
	// Org is the organisation.
	Org string
	// Fetched is when the list in use was read; zero when there is none.
	Fetched time.Time
	// Err is why the last read failed; nil when it did not.
	Err error
}

// New builds a catalog. It reads nothing: the first Snapshot does, or Run.
func New(cfg Config, deps Deps) (*Catalog, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	if deps.Fetch == nil {
		return nil, errors.New("catalog: no function that reads the lists")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler))
	rates, err := cfg.Storage.rates()
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	rates.Sandbox = cfg.SandboxRate
	return &Catalog{cfg: cfg, rates: rates, deps: deps, stale: make(chan struct{}, 1), orgs: map[string]*record{}}, nil
}

// Snapshot is the organisation's current price list. It comes from memory
// unless there is none or it is older than MaxAge; then it is read, once for
// all who wait. After a failure it is read again after 100 ms, and after twice the last
// pause with each further one, Retry at most. The error wraps
// ErrUnavailable; a nil Snapshot prices nothing, so it may be used as it is.
func (c *Catalog) Snapshot(ctx context.Context, org string) (*Snapshot, error) {
	snap, known, err := c.look(org)
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrUnavailable, org, err)
	}
	if known {
		return snap, nil
	}
	return c.wait(ctx, org, func(ctx context.Context) (*Snapshot, error) {
		// Another read may have ended since.
		if snap, known, err := c.look(org); known || err != nil {
			return snap, err
		}
		return c.read(ctx, org)
	})
}

// look tells what Snapshot answers without a read: a list that is young enough, or
// an error that is. If there is neither, the list is not known.
func (c *Catalog) look(org string) (snap *Snapshot, known bool, err error) {
	c.mu.Lock()
	r := c.orgs[org]
	if r == nil {
		r = &record{}
		c.orgs[org] = r
	}
	was := *r
	c.mu.Unlock()

	switch now := c.deps.Now(); {
	case was.last != nil && now.Sub(was.last.fetched) <= c.cfg.MaxAge:
		return was.last, true, nil
	case was.resting(now, c.cfg.Retry):
		return nil, false, was.lastErr
	default:
		return nil, false, nil
	}
}

// wait gets the list by read, sharing its call with all others that ask meanwhile. It
// outlives the caller that began it, under its own deadline.
func (c *Catalog) wait(ctx context.Context, org string, read func(context.Context) (*Snapshot, error)) (*Snapshot, error) {
	done := c.flight.DoChan(org, func() (any, error) {
		return read(context.WithoutCancel(ctx))
	})
	select {
	case res := <-done:
		if res.Err != nil {
			return nil, fmt.Errorf("%w for %s: %w", ErrUnavailable, org, res.Err)
		}
		snap, _ := res.Val.(*Snapshot)
		return snap, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w for %s: %w", ErrUnavailable, org, context.Cause(ctx))
	}
}

// read fetches the lists and keeps them if all are good. The time of a list
// is when its reading began: it is at least that old.
func (c *Catalog) read(ctx context.Context, org string) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	began := c.deps.Now()
	snap, err := c.fetch(ctx, org, began)
	snap, before := c.keep(org, began, snap, err)
	switch {
	case (before == nil) == (err == nil):
	case err != nil:
		c.deps.Logger.LogAttrs(ctx, slog.LevelWarn, "price list not read, the last one stays until it is too old",
			slog.String("org", org), slog.String("fault", err.Error()))
	default:
		c.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "price list read again", slog.String("org", org))
	}
	return snap, err
}

// keep notes how a read went. It returns the list with the prices that are raised, and how the read before went. A list that equals the
// organisation's last one or the one read before it, for another organisation, shares its memory: most organisations have the same prices.
func (c *Catalog) keep(org string, began time.Time, snap *Snapshot, err error) (kept *Snapshot, before error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.orgs[org]
	if r == nil {
		r = &record{}
		c.orgs[org] = r
	}
	before = r.lastErr
	r.tried, r.lastErr = began, err
	if err == nil {
		snap = r.raise(snap, began, c.cfg.Refresh).sharing(r.last).sharing(c.latest)
		r.last, r.failed, c.latest = snap, 0, snap
	} else {
		r.failed++
	}
	return snap, before
}

func (c *Catalog) fetch(ctx context.Context, org string, began time.Time) (*Snapshot, error) {
	lists, err := c.deps.Fetch(ctx, org, c.Last(org))
	if err != nil {
		return nil, err
	}
	if len(lists.GPUs) == 0 {
		return nil, errors.New("the list of GPU types is empty")
	}
	return NewSnapshot(lists, c.rates, began), nil
}

// RunPrice keeps the lists of the given organisations, and of every one asked for
// later, younger than Refresh. It returns when the context ends, with its
// cause. A failed read leaves the last good list in use until MaxAge.
func (c *Catalog) Run(ctx context.Context, orgs ...string) error {
	c.mu.Lock()
	for _, org := range orgs {
		if c.orgs[org] == nil {
			c.orgs[org] = &record{}
		}
	}
	c.mu.Unlock()
	tick := time.NewTicker(min(c.cfg.Retry, c.cfg.Refresh))
	defer tick.Stop()
	for {
		c.refresh(ctx)
		select {
		case <-tick.C:
		case <-c.stale:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// refresh reads every list that is due.
func (c *Catalog) refresh(ctx context.Context) {
	for _, org := range c.due() {
		if ctx.Err() != nil {
			return
		}
		read := func(ctx context.Context) (*Snapshot, error) { return c.read(ctx, org) }
		_, _ = c.wait(ctx, org, read) // read logs what went wrong, Status has it
	}
}

func (c *Catalog) due() []string {
	now := c.deps.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []string
	for _, org := range slices.Sorted(maps.Keys(c.orgs)) {
		r := c.orgs[org]
		young := r.last != nil && now.Sub(r.last.fetched) < c.cfg.Refresh
		if young && !r.charged.Before(r.last.fetched) {
			young = now.Sub(r.tried) < c.cfg.Retry // the list is out of date
		}
		if !young && !r.resting(now, c.cfg.Retry) {
			due = append(due, org)
		}
	}
	return due
}

// Forget drops an organisation's list, when the organisation is gone or its
// credential now belongs to another platform account.
func (c *Catalog) Forget(org string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.orgs, org)
}

// Last is the list of an organisation that was read last, however old, nil for none.
func (c *Catalog) Last(org string) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.orgs[org]; r != nil {
		return r.last
	}
	return nil
}

// Status lists how the price lists are doing, by organisation.
func (c *Catalog) Status() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Status
	for _, org := range slices.Sorted(maps.Keys(c.orgs)) {
		s := Status{Org: org, Err: c.orgs[org].lastErr}
		if last := c.orgs[org].last; last != nil {
			s.Fetched = last.fetched
		}
		out = append(out, s)
	}
	return out
}
