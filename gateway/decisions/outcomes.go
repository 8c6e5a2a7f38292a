package decisions

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// slotLength is the length of the smallest bucket of outcome counts.
const slotLength = 5 * time.Minute

// ended identifies a count of completed requests: by outcome and team, or by the rate limit window that refused them.
type ended struct {
	slot          time.Time
	outcome, team string
	window        string
}

// addOutcome counts the request that e reports.
func (c *counter) addOutcome(e *telemetry.Event) {
	c.outcomes.add(e.Org, ended{slot: e.Start.UTC().Truncate(slotLength), outcome: explain.OutcomeOf(e.Refusal, e.Status), team: e.Team}, 1)
}

// addThrottled counts each rate limit window that refused the request that e reports.
func (c *counter) addThrottled(e *telemetry.Event) {
	for _, window := range e.Throttled {
		c.outcomes.add(e.Org, ended{slot: e.Start.UTC().Truncate(slotLength), window: window}, 1)
	}
}

// Suffixes of the store keys of an organisation's counts in one hour: outcomes per five minutes, outcomes per team, and refusals by rate
// limit window per five minutes.
const (
	outcomesSuffix     = ":outcomes"
	teamOutcomesSuffix = ":outcomes:teams"
	throttledSuffix    = ":throttled"
)

// AddOutcomes adds counts to the stored request counts of an organisation.
func (s *CountStore) AddOutcomes(ctx context.Context, org string, counts map[ended]int64) error {
	fields := make(map[store.Field]int64)
	for what, n := range counts {
		hour := what.slot.Truncate(time.Hour)
		slot := strconv.Itoa(int(what.slot.Sub(hour) / slotLength))
		if what.window != "" {
			fields[store.Field{Hash: hourOf(org, hour) + throttledSuffix, Name: what.window + apart + slot}] = n
			continue
		}
		fields[store.Field{Hash: hourOf(org, hour) + outcomesSuffix, Name: what.outcome + apart + slot}] += n
		fields[store.Field{Hash: hourOf(org, hour) + teamOutcomesSuffix, Name: what.outcome + apart + what.team}] += n
	}
	return s.hours.Add(ctx, fields)
}

// byTeam selects counts per hour and team, and byWindow counts per rate limit window and five minutes.
const (
	byTeam   = "team"
	byWindow = "window"
)

// Outcomes returns request counts of an organisation for the hours from first (inclusive) to last (exclusive). If by is "team", it counts
// requests by team and outcome in each hour. If by is "window", it counts throttled requests by time window of the limit in each five
// minutes. For any other value, it counts requests by outcome in each five minutes.
func (s *CountStore) Outcomes(ctx context.Context, org string, first, last time.Time, by string) (map[ended]int64, error) {
	suffix := cmp.Or(map[string]string{byTeam: teamOutcomesSuffix, byWindow: throttledSuffix}[by], outcomesSuffix)
	out := make(map[ended]int64)
	err := s.read(ctx, org, first, last, suffix, func(hour time.Time, field string, n int64) {
		outcome, of, _ := strings.Cut(field, apart)
		what := ended{slot: hour, outcome: outcome}
		if by == byWindow {
			what.outcome, what.window = "", outcome
		}
		if by == byTeam {
			what.team = of
		} else if slot, err := strconv.Atoi(of); err == nil {
			what.slot = what.slot.Add(time.Duration(slot) * slotLength)
		}
		out[what] += n
	})
	return out, err
}

// Throttled returns the number of requests of an organisation that each rate limit window has refused since a time, rounded down to five
// minutes. The keys have the form of [telemetry.Event.Throttled].
func (d *Decisions) Throttled(ctx context.Context, org string, since time.Time) (map[string]int64, error) {
	d.counter.write(ctx, d.today) // include the counts of this process
	found, err := d.counter.store.Outcomes(ctx, org, since, d.deps.Now(), byWindow)
	out := make(map[string]int64)
	for what, n := range found {
		if !what.slot.Before(since.Truncate(slotLength)) {
			out[what.window] += n
		}
	}
	return out, err
}

// OutcomeCount holds the number of requests with each outcome in one time bucket.
type OutcomeCount struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Team is set if requests are counted by team.
	Team      string `json:"team,omitempty"`
	Allowed   int64  `json:"allowed"`
	Denied    int64  `json:"denied"`
	Throttled int64  `json:"throttled"`
	Failed    int64  `json:"failed"`
}

// add adds n requests with the given outcome. It ignores outcomes that a later version may have stored.
func (c *OutcomeCount) add(outcome string, n int64) {
	switch outcome {
	case explain.OutcomeAllowed:
		c.Allowed += n
	case explain.OutcomeDenied:
		c.Denied += n
	case explain.OutcomeThrottled:
		c.Throttled += n
	case explain.OutcomeFailed:
		c.Failed += n
	}
}

// Sum returns the total number of requests.
func (c *OutcomeCount) Sum() int64 { return c.Allowed + c.Denied + c.Throttled + c.Failed }

// OutcomeCounts lists request counts by outcome. Empty buckets are included unless requests are counted by team.
type OutcomeCounts struct {
	From   time.Time      `json:"from"`
	To     time.Time      `json:"to"`
	Bucket string         `json:"bucket"`
	Counts []OutcomeCount `json:"counts"`
	// Total is the sum over all buckets and teams.
	Total OutcomeCount `json:"total"`
}

// countedOutcomes holds the parameters of a query for request counts.
type countedOutcomes struct {
	adminapi.OrgParam

	Team   adminapi.PastTeam  `query:"team" doc:"only requests of this team; cannot be combined with bucket 5m"`
	Since  adminapi.Since     `query:"since" default:"24h" doc:"start of the range: a time, or a duration before now; at most 30d ago, and rounded down to the start of a bucket"`
	Until  adminapi.Timestamp `query:"until" doc:"end of the range; default: now"`
	Bucket string             `query:"bucket" oneof:"5m,hour,day,total" default:"hour" doc:"period covered by each count; days are in the organisation's time zone"`
	By     string             `query:"by" oneof:"team" doc:"field to count requests by; cannot be combined with bucket 5m"`
}

// maxSlots is the maximum number of five-minute buckets in a response.
const maxSlots = 24 * 12

// buckets returns the empty buckets that cover the time from since to to, and the start of the first one.
func (p *countedOutcomes) buckets(since, to time.Time, zone *time.Location) (from time.Time, list []OutcomeCount) {
	day := func(t time.Time, later int) time.Time {
		y, m, d := t.In(zone).Date()
		return time.Date(y, m, d+later, 0, 0, 0, 0, zone)
	}
	from = since.UTC().Truncate(time.Hour)
	next := func(time.Time) time.Time { return to }
	switch p.Bucket {
	case "5m":
		from = since.UTC().Truncate(slotLength)
		next = func(t time.Time) time.Time { return t.Add(slotLength) }
	case "hour":
		next = func(t time.Time) time.Time { return t.Add(time.Hour) }
	case "day":
		from = day(since, 0)
		next = func(t time.Time) time.Time { return day(t, 1) }
	}
	for at := from; at.Before(to); at = next(at) {
		list = append(list, OutcomeCount{Start: at.UTC(), End: next(at).UTC()})
	}
	return from, list
}

func (d *Decisions) outcomeCounts(ctx context.Context, s adminapi.Principal, p countedOutcomes) (*OutcomeCounts, error) {
	org := string(p.Org)
	by := p.By
	if p.Team != "" {
		by = byTeam
	}
	zone, to := d.deps.Zone(org).Location(), time.Time(p.Until)
	if to.IsZero() || to.After(s.Now) {
		to = s.Now
	}
	from, buckets := p.buckets(sinceStored(p.Since, s.Now), to, zone)
	switch {
	case !from.Before(to):
		return nil, adminapi.BadParam("since", "must be before until, and no more than 30 days ago")
	case by != "" && p.Bucket == "5m":
		return nil, adminapi.BadParam("bucket", "cannot be 5m for teams, because their requests are counted by the hour")
	case p.Bucket == "5m" && to.Sub(from) > maxSlots*slotLength:
		return nil, adminapi.BadParam("since", "buckets of 5m can cover at most 24h")
	}
	d.counter.write(ctx, d.today) // include the counts of this process
	found, err := d.counter.store.Outcomes(ctx, org, from, to, by)
	if err != nil {
		return nil, err
	}
	out := &OutcomeCounts{From: from.UTC(), To: to.UTC(), Bucket: p.Bucket, Total: OutcomeCount{Start: from.UTC(), End: to.UTC()}}
	out.Counts = p.sum(found, buckets, &out.Total)
	return out, nil
}

// sum adds the counts up by bucket, and by team if the query groups by team.
func (p *countedOutcomes) sum(found map[ended]int64, buckets []OutcomeCount, total *OutcomeCount) []OutcomeCount {
	type group struct {
		bucket int
		team   string
	}
	teams := make(map[group]*OutcomeCount)
	for what, n := range found {
		i, at := slices.BinarySearchFunc(buckets, what.slot, func(b OutcomeCount, t time.Time) int { return b.Start.Compare(t) })
		if !at {
			i--
		}
		if i < 0 || !what.slot.Before(buckets[i].End) || p.Team != "" && string(p.Team) != what.team {
			continue
		}
		total.add(what.outcome, n)
		if p.By == "" {
			buckets[i].add(what.outcome, n)
			continue
		}
		g := group{i, what.team}
		if teams[g] == nil {
			teams[g] = &OutcomeCount{Start: buckets[i].Start, End: buckets[i].End, Team: what.team}
		}
		teams[g].add(what.outcome, n)
	}
	if p.By == "" {
		return buckets
	}
	list := make([]OutcomeCount, 0, len(teams))
	for c := range maps.Values(teams) {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b OutcomeCount) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(b.Sum(), a.Sum()), cmp.Compare(a.Team, b.Team))
	})
	return list
}

func (d *Decisions) outcomeRow() adminapi.Endpoint {
	return adminapi.Endpoint{
		Pattern: "GET /admin/decisions/outcomes", Summary: "Number of requests by outcome and time",
		AuditsReads: true, Role: adminapi.Viewer, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(d.outcomeCounts),
		Commands: []adminapi.Command{{
			Use: "outcomes ORG", Heading: "Policy", Short: "Count requests by outcome: allowed, denied, throttled, failed",
			Example: "tollgate outcomes acme --since 24h\ntollgate outcomes acme --since 7d --bucket total --by team",
			Long: `Counts requests by outcome and time. Throttled requests exceeded a rate limit, or were
shed under overload. Failed requests ended with a status of 500 or above. Denied requests
were refused by the gateway for any other reason. All other requests were allowed.
Requests without a valid key and dry runs are not counted. Counts are kept for 30 days.`,
		}},
	}
}
