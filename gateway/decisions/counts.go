package decisions

import (
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/tally"
)

// newTally makes the counter of policies' verdicts, which works behind the answers.
func (d *Decisions) newTally(prefix string) {
	d.tally = tally.New(d.deps.Redis, prefix+"policies:")
	d.said.Write, d.said.Go, d.said.Pause = d.writeSaid, d.deps.Go, behind
}

// countSaid has the verdicts on an exchange counted, unless too much waits.
func (d *Decisions) countSaid(p explain.Past) {
	if p.Spoke() && !d.said.Add(p) {
		unwrittenSaid(d, errors.New("too many wait"))
	}
}

func unwrittenSaid(d *Decisions, err error) {
	d.deps.Logger.Warn("what policies said was not counted", "error", err)
}

// writeSaid counts the verdicts of policies, each once for a call.
func (d *Decisions) writeSaid(batch []explain.Past) {
	counts := make(map[string]map[tally.Said]int64)
	for _, p := range batch {
		x := p.Report(nil)
		if counts[x.Caller.Org] == nil {
			counts[x.Caller.Org] = make(map[tally.Said]int64)
		}
		for i := range x.Calls {
			once := make(map[tally.Said]bool)
			for _, said := range x.Calls[i].Policies {
				once[tally.Said{Hour: x.Time.UTC().Truncate(time.Hour), Policy: said.Policy, Verdict: said.Verdict, Team: x.Caller.Team}] = true
			}
			for said := range once {
				counts[x.Caller.Org][said]++
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), archiveTime) //nolint:forbidigo // it outlives the requests, and depends on nothing of them
	defer cancel()
	for org, said := range counts {
		if err := d.tally.Add(ctx, org, said); err != nil {
			unwrittenSaid(d, err)
		}
	}
}

// Counts implements admin.Decisions.
func (d Rows) Counts(ctx context.Context, org string, from, to time.Time) ([]admin.PolicyCount, error) {
	if d.d.deps.Config().Org(org) == nil {
		return nil, admin.ErrNoOrg
	}
	counts, err := d.d.tally.List(ctx, org, from, to)
	out := make([]admin.PolicyCount, len(counts))
	for i, c := range counts {
		out[i] = admin.PolicyCount{Hour: c.Hour, Policy: c.Policy, Verdict: c.Verdict, Team: c.Team, Calls: c.Calls}
	}
	return out, err
}
