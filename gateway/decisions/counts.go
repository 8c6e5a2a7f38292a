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

// counter counts refusals and the verdicts of policies in memory, and writes the counts to the store. It drops nothing: the counts that could not be
// written are written later. It is safe for concurrent use.
type counter struct {
	store  *Tally
	logger *slog.Logger
	// process names this process in the store.
	process string

	writing sync.Mutex // held during a write, so that no older count replaces a newer one

	mu sync.Mutex // guards the fields below
	// refused holds the refusals of today, and of the days that are not yet written, by reason.
	refused map[orgDay]map[string]Refusals
	// unwritten are the days whose refusals have changed since they were written.
	unwritten map[orgDay]bool
	// said holds the unwritten verdicts of policies by organisation.
	said map[string]map[Said]int64
}

// orgDay is a day of an organisation, as a date in its time zone.
type orgDay struct{ org, day string }

const (
	// countEvery is the time between two writes of counts.
	countEvery = time.Second
	// rewriteEvery is after how many writes the refusals of today are written again, changed or not: the store may have lost them.
	rewriteEvery = 10
)

func newCounter(store *Tally, logger *slog.Logger) *counter {
	return &counter{
		store: store, logger: logger, process: ulid.Make().String(),
		refused: make(map[orgDay]map[string]Refusals), unwritten: make(map[orgDay]bool), said: make(map[string]map[Said]int64),
	}
}

// Ended implements filter.Observer. It counts the refusal and the verdicts of policies, and adds the exchange to the history.
func (d *Decisions) Ended(ex *filter.Exchange) {
	if e := ex.Event; ex.Caller != nil && e.DryRun == nil && !explain.IsLocalRead(ex) {
		if e.Refusal != "" {
			d.counter.addRefusal(orgDay{e.Org, d.day(e.Org, e.Start)}, e)
		}
		if said := explain.PolicyResults(ex); len(said) > 0 {
			d.counter.addSaid(e, said)
		}
	}
	d.History.Ended(ex)
}

// day returns the date of a time in the zone of an organisation.
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

func (c *counter) addSaid(e *telemetry.Event, list []explain.PolicyResult) {
	hour := e.Start.UTC().Truncate(time.Hour)
	counts := make(map[Said]int64, len(list))
	for _, s := range list {
		counts[Said{Hour: hour, Policy: s.Policy, Verdict: s.Verdict, Team: e.Team}]++
	}
	c.mergeSaid(e.Org, counts)
}

// mergeSaid adds counts to those that are to be written.
func (c *counter) mergeSaid(org string, counts map[Said]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said[org] == nil {
		c.said[org] = make(map[Said]int64)
	}
	for said, n := range counts {
		c.said[org][said] += n
	}
}

// writeCounts writes the counts until ctx ends, and then a last time.
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

// write writes the counts that have changed, and forgets the refusals of days that are over.
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
	said := c.said
	c.said = make(map[string]map[Said]int64)
	c.mu.Unlock()
	for org, counts := range said {
		if err := c.store.Add(ctx, org, counts); err != nil {
			errs = append(errs, err)
			c.mergeSaid(org, counts)
		}
	}
	if err := errors.Join(errs...); err != nil {
		c.logger.WarnContext(ctx, "counts of decisions not written yet", "error", err)
	}
}

// rewrite has the refusals of all days in memory written again.
func (c *counter) rewrite() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for on := range c.refused {
		c.unwritten[on] = true
	}
}

// changed returns the days whose refusals are to be written.
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

// Refused counts the calls that were refused for one reason. Decision is the latest of them.
type Refused struct {
	Org string `json:"org"`
	// Reason is a policy, a limit, a budget, or a kind of problem.
	Reason   string `json:"reason"`
	Calls    int    `json:"calls"`
	Decision string `json:"decision"`
}

// Refused counts the refusals of today, in the organisation's zone, the most frequent reason first. With an error they are those of this gateway.
func (d *Decisions) Refused(ctx context.Context, org string) ([]Refused, error) {
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
	var out []Refused
	for reason, n := range sums {
		out = append(out, Refused{Org: org, Reason: reason, Calls: int(n.Calls), Decision: n.Decision})
	}
	slices.SortFunc(out, func(a, b Refused) int {
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
