package decisions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// counter counts refusals and policy verdicts in memory and writes the counts to the store. Counts that could not be written are
// kept and written later. It is safe for concurrent use.
type counter struct {
	store  *CountStore
	logger *slog.Logger
	// process identifies this process in the store.
	process string

	writing sync.Mutex // held during a write, so that an older count never replaces a newer one

	mu sync.Mutex // guards the fields below
	// refused holds the refusals of today, and unwritten refusals of earlier days, by reason.
	refused map[orgDay]map[string]Refusals
	// unstored contains the days whose refusals have changed since the last write.
	unstored map[orgDay]bool

	verdicts unwritten[CountKey]
	outcomes unwritten[ended]
}

// orgDay is a date in the time zone of an organisation.
type orgDay struct{ org, day string }

const (
	// countEvery is the interval between writes.
	countEvery = time.Second
	// rewriteEvery is the number of writes after which today's refusals are written again even if unchanged, in case the store lost
	// them.
	rewriteEvery = 10
)

func newCounter(store *CountStore, logger *slog.Logger) *counter {
	return &counter{
		store: store, logger: logger, process: ulid.Make().String(),
		refused: make(map[orgDay]map[string]Refusals), unstored: make(map[orgDay]bool),
	}
}

// Ended implements filter.Observer. It counts the refusal and the policy verdicts of an exchange and adds the exchange to the
// history. Of a local read, it counts only the rate limits that refused it.
func (d *Decisions) Ended(ex *filter.Exchange) {
	e := ex.Event
	counts := ex.Caller != nil && e.DryRun == nil
	if counts {
		d.counter.addThrottled(e)
	}
	if counts && !explain.IsLocalRead(ex) {
		d.counter.addOutcome(e)
		if e.Refusal != "" {
			d.counter.addRefusal(orgDay{e.Org, d.day(e.Org, e.Start)}, e)
		}
		for _, r := range explain.PolicyResults(ex) {
			key := CountKey{Hour: e.Start.UTC().Truncate(time.Hour), Policy: r.Policy, Verdict: r.Verdict, Team: e.Team}
			d.counter.verdicts.add(e.Org, key, 1)
		}
	}
	d.History.Ended(ex)
}

// day returns the date of a time in an organisation's time zone.
func (d *Decisions) day(org string, at time.Time) string {
	return at.In(d.deps.Zone(org).Location()).Format(time.DateOnly)
}

func (c *counter) addRefusal(on orgDay, e *telemetry.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused[on] == nil {
		c.refused[on] = make(map[string]Refusals)
	}
	reason := refusedFor(e)
	c.refused[on][reason] = c.refused[on][reason].Add(Refusals{Calls: 1, Decision: e.DecisionID})
	c.unstored[on] = true
}

// writeCounts writes the counts until ctx ends, and then once more.
func (d *Decisions) writeCounts(ctx context.Context) error {
	beat := time.NewTicker(countEvery)
	defer beat.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			d.counter.write(context.WithoutCancel(ctx), d.today)
			return ctx.Err()
		case <-beat.C:
			if n%rewriteEvery == 0 {
				d.counter.rewrite()
			}
			d.counter.write(ctx, d.today)
		}
	}
}

func (d *Decisions) today(org string) string { return d.day(org, d.deps.Now()) }

// write writes the changed counts and drops the refusals of earlier days.
func (c *counter) write(ctx context.Context, today func(org string) string) {
	c.writing.Lock()
	defer c.writing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, archiveTime)
	defer cancel()
	var errs []error
	for _, on := range c.changed(today) {
		c.mu.Lock()
		counts := maps.Clone(c.refused[on])
		delete(c.unstored, on)
		c.mu.Unlock()
		if err := c.store.SetRefusals(ctx, on.org, on.day, c.process, counts); err != nil {
			errs = append(errs, err)
			c.mu.Lock()
			c.unstored[on] = true
			c.mu.Unlock()
		}
	}
	errs = append(errs, c.verdicts.write(ctx, c.store.Add), c.outcomes.write(ctx, c.store.AddOutcomes))
	if err := errors.Join(errs...); err != nil {
		c.logger.WarnContext(ctx, "cannot write decision counts, retrying", "error", err)
	}
}

// rewrite marks the refusals of all days in memory as unwritten.
func (c *counter) rewrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for on := range c.refused {
		c.unstored[on] = true
	}
}

// changed returns the days whose refusals must be written.
func (c *counter) changed(today func(org string) string) []orgDay {
	c.mu.Lock()
	defer c.mu.Unlock()
	for on := range c.refused {
		if !c.unstored[on] && on.day != today(on.org) {
			delete(c.refused, on)
		}
	}
	return slices.Collect(maps.Keys(c.unstored))
}

// RefusalCount is the number of calls refused for one reason. Decision is the decision ID of the
// latest call.
type RefusalCount struct {
	Org string `json:"org"`
	// Reason is the name of a policy, "limit", "budget", or a kind of problem.
	Reason   string `json:"reason"`
	Calls    int    `json:"calls"`
	Decision string `json:"decision"`
}

// RefusalCounts returns today's refusals in the organisation's time zone, most frequent reason first. If it returns an error, the
// counts only include refusals by this gateway.
func (d *Decisions) RefusalCounts(ctx context.Context, org string) ([]RefusalCount, error) {
	c, on := d.counter, orgDay{org, d.today(org)}
	sums, err := c.store.Refusals(ctx, org, on.day, c.process)
	if sums == nil {
		sums = make(map[string]Refusals)
	}
	c.mu.Lock()
	for reason, n := range c.refused[on] {
		sums[reason] = sums[reason].Add(n)
	}
	c.mu.Unlock()
	var out []RefusalCount
	for reason, n := range sums {
		out = append(out, RefusalCount{Org: org, Reason: reason, Calls: int(n.Calls), Decision: n.Decision})
	}
	slices.SortFunc(out, func(a, b RefusalCount) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Reason, b.Reason))
	})
	return out, err
}

// refusedFor returns the reason for a refusal: the policy, "limit", "budget", or the kind of problem.
func refusedFor(e *telemetry.Event) string {
	switch kind := problem.Kind(e.Refusal); {
	case kind == problem.Forbidden && len(e.Denied) > 0:
		return "policy " + e.Denied[0]
	case kind == problem.RateLimited:
		return "limit"
	case kind == problem.BudgetExceeded:
		return "budget"
	}
	return e.Refusal
}
