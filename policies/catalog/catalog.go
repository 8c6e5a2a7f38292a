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

// Deps holds the dependencies of a Catalog.
type Deps struct {
	// Fetch reads an organisation's price lists from the platform with the organisation's credential. last is the snapshot in use,
	// or nil. The Parse functions decode the responses. Fetch is called concurrently. It is required.
	Fetch func(ctx context.Context, org string, last *Snapshot) (Lists, error)
	// Now returns the current time; nil means time.Now.
	Now func() time.Time
	// Logger logs the first failure of each series and the recovery; nil disables logging.
	Logger *slog.Logger
}

// ErrUnavailable is wrapped by the errors of Snapshot. It means that no price list is recent enough to use.
var ErrUnavailable = errors.New("no current price list")

// Catalog caches one price list per organisation. It is safe for concurrent use.
type Catalog struct {
	cfg    Config
	rates  Rates
	deps   Deps
	flight singleflight.Group
	stale  chan struct{} // wakes Run to refresh an outdated list

	mu     sync.Mutex // guards the fields below
	orgs   map[string]*record
	latest *Snapshot // latest snapshot of any organisation
}

// record is the cache entry of one organisation.
type record struct {
	last    *Snapshot // nil before the first successful read
	tried   time.Time // start of the last read
	lastErr error     // error of the last read, or nil
	failed  int       // consecutive failed reads
	raised  []charged // prices in last raised to what the platform charged
	charged time.Time // when the platform last charged more than the list price; zero if never
}

// firstRetry is the pause after the first failed read. It doubles with each further failure, up to Config.Retry.
const firstRetry = 100 * time.Millisecond

// resting reports whether the pause after the last failed read has not passed yet.
func (r *record) resting(now time.Time, most time.Duration) bool {
	return r.failed > 0 && now.Sub(r.tried) < min(most, firstRetry<<min(r.failed-1, 16))
}

// Status describes the price list of one organisation.
type Status struct {
	// Org is the ID of the organisation.
	Org string
	// Fetched is when the list in use was read, or the zero time before the first list.
	Fetched time.Time
	// Err is the error of the last read, or nil.
	Err error
}

// New returns a Catalog. It reads nothing; lists are read by the first call of Snapshot, or by Run.
func New(cfg Config, deps Deps) (*Catalog, error) {
	rates, err := cfg.Storage.rates()
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	if deps.Fetch == nil {
		return nil, errors.New("catalog: Deps.Fetch is required")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler))
	rates.Sandbox = cfg.SandboxRate
	return &Catalog{cfg: cfg, rates: rates, deps: deps, stale: make(chan struct{}, 1), orgs: map[string]*record{}}, nil
}

// Snapshot returns the organisation's current price list. It returns the cached list unless the list is missing or older than MaxAge. In
// that case it reads the list, once for all concurrent callers. After a failed read it waits 100 ms before the next read, and twice as long
// after each further failure, up to Retry. Errors wrap ErrUnavailable. A nil Snapshot is safe to use and treats every price as unknown.
func (c *Catalog) Snapshot(ctx context.Context, org string) (*Snapshot, error) {
	snap, known, err := c.cached(org)
	if !known && err == nil {
		snap, err = c.wait(ctx, org, func(ctx context.Context) (*Snapshot, error) {
			// Another read may have finished in the meantime.
			if snap, known, err := c.cached(org); known || err != nil {
				return snap, err
			}
			return c.read(ctx, org)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%w for %s: %w", ErrUnavailable, org, err)
	}
	return snap, nil
}

// recordLocked returns the record of an organisation. It creates a missing one.
func (c *Catalog) recordLocked(org string) *record {
	r := c.orgs[org]
	if r == nil {
		r = &record{}
		c.orgs[org] = r
	}
	return r
}

// cached returns the cached list, or a recent error. known is false if the list has to be read.
func (c *Catalog) cached(org string) (snap *Snapshot, known bool, err error) {
	c.mu.Lock()
	was := *c.recordLocked(org)
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

// wait reads the list, sharing the read with concurrent callers. The read has a separate deadline. It continues if the caller that started
// it stops waiting.
func (c *Catalog) wait(ctx context.Context, org string, read func(context.Context) (*Snapshot, error)) (*Snapshot, error) {
	done := c.flight.DoChan(org, func() (any, error) {
		return read(context.WithoutCancel(ctx))
	})
	select {
	case res := <-done:
		snap, _ := res.Val.(*Snapshot)
		return snap, res.Err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read fetches the lists and caches them if all are valid. The list is dated to the start of the read.
func (c *Catalog) read(ctx context.Context, org string) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	began := c.deps.Now()
	snap, err := c.fetch(ctx, org, began)
	snap, before := c.store(org, began, snap, err)
	switch {
	case (before == nil) == (err == nil):
	case err != nil:
		c.deps.Logger.LogAttrs(ctx, slog.LevelWarn, "cannot read the price list; the last one, if any, stays in use until it reaches max_age",
			slog.String("org", org), slog.String("fault", err.Error()))
	default:
		c.deps.Logger.LogAttrs(ctx, slog.LevelInfo, "price list read after earlier failures", slog.String("org", org))
	}
	return snap, err
}

// store stores the result of a read. It returns the list with raised prices applied, and the error of the previous read. If the list equals
// the organisation's previous list, or the last list read for any organisation, it shares the memory of that list.
func (c *Catalog) store(org string, began time.Time, snap *Snapshot, err error) (kept *Snapshot, before error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.recordLocked(org)
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
	return NewSnapshot(lists, c.rates, began), nil
}

// Run refreshes the price lists of the given organisations, and of each organisation passed to Snapshot. It reads each list again before
// the list is older than Refresh. When ctx ends, Run returns context.Cause(ctx). After a failed read, the last valid list stays in use
// until it is older than MaxAge.
func (c *Catalog) Run(ctx context.Context, orgs ...string) error {
	c.mu.Lock()
	for _, org := range orgs {
		c.recordLocked(org)
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
		_, _ = c.wait(ctx, org, read) // read logs the error, and Status returns it
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
			young = now.Sub(r.tried) < c.cfg.Retry // the list is outdated
		}
		if !young && !r.resting(now, c.cfg.Retry) {
			due = append(due, org)
		}
	}
	return due
}

// Forget drops an organisation's list. Call it when the organisation is removed or its credential changes to another platform
// account.
func (c *Catalog) Forget(org string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.orgs, org)
}

// Last returns the most recently read list of an organisation, regardless of its age, or nil if none has been read.
func (c *Catalog) Last(org string) *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.orgs[org]; r != nil {
		return r.last
	}
	return nil
}

// Status returns the status of all price lists, sorted by organisation.
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
