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
	// unwritten contains the days whose refusals have changed since the last write.
	unwritten map[orgDay]bool
	// verdicts holds unwritten policy verdicts by organisation.
	verdicts map[string]map[CountKey]int64

	outcomes outcomes
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
		refused: make(map[orgDay]map[string]Refusals), unwritten: make(map[orgDay]bool), verdicts: make(map[string]map[CountKey]int64),
	}
}

// Ended implements filter.Observer. It counts the refusal and the policy verdicts of an exchange and adds the exchange to the
// history.
func (d *Decisions) Ended(ex *filter.Exchange) {
	if e := ex.Event; ex.Caller != nil && e.DryRun == nil && !explain.IsLocalRead(ex) {
		d.counter.outcomes.add(e)
		if e.Refusal != "" {
			d.counter.addRefusal(orgDay{e.Org, d.day(e.Org, e.Start)}, e)
		}
		if results := explain.PolicyResults(ex); len(results) > 0 {
			d.counter.addVerdicts(e, results)
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
	c.unwritten[on] = true
}

func (c *counter) addVerdicts(e *telemetry.Event, list []explain.PolicyResult) {
	hour := e.Start.UTC().Truncate(time.Hour)
	counts := make(map[CountKey]int64, len(list))
	for _, s := range list {
		counts[CountKey{Hour: hour, Policy: s.Policy, Verdict: s.Verdict, Team: e.Team}]++
	}
	c.mergeVerdicts(e.Org, counts)
}

// mergeVerdicts adds counts to the unwritten counts.
func (c *counter) mergeVerdicts(org string, counts map[CountKey]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verdicts[org] == nil {
		c.verdicts[org] = make(map[CountKey]int64)
	}
	for key, n := range counts {
		c.verdicts[org][key] += n
	}
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
		delete(c.unwritten, on)
		c.mu.Unlock()
		if err := c.store.SetRefusals(ctx, on.org, on.day, c.process, counts); err != nil {
			errs = append(errs, err)
			c.mu.Lock()
			c.unwritten[on] = true
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	verdicts := c.verdicts
	c.verdicts = make(map[string]map[CountKey]int64)
	c.mu.Unlock()
	for org, counts := range verdicts {
		if err := c.store.Add(ctx, org, counts); err != nil {
			errs = append(errs, err)
			c.mergeVerdicts(org, counts)
		}
	}
	errs = append(errs, c.outcomes.write(ctx, c.store)...)
	if err := errors.Join(errs...); err != nil {
		c.logger.WarnContext(ctx, "cannot write decision counts, retrying", "error", err)
	}
}

// rewrite marks the refusals of all days in memory as unwritten.
func (c *counter) rewrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for on := range c.refused {
		c.unwritten[on] = true
	}
}

// changed returns the days whose refusals must be written.
func (c *counter) changed(today func(org string) string) []orgDay {
	c.mu.Lock()
	defer c.mu.Unlock()
	for on := range c.refused {
		if !c.unwritten[on] && on.day != today(on.org) {
			delete(c.refused, on)
		}
	}
	return slices.Collect(maps.Keys(c.unwritten))
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
