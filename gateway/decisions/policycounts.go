package decisions

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// PolicyCount is the number of calls for which a policy had a verdict.
type PolicyCount struct {
	// Hour is the start of the hour. It is omitted if several hours are added up.
	Hour   time.Time `json:"hour,omitzero"`
	Policy string    `json:"policy"`
	// Verdict is denies, warns, would deny, excepted or changes.
	Verdict string `json:"verdict"`
	Team    string `json:"team,omitempty"`
	Calls   int64  `json:"calls"`
}

// PolicyCounts holds the counts of whole hours.
type PolicyCounts struct {
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Counts []PolicyCount `json:"counts"`
}

// counted selects the counts to show.
type counted struct {
	adminapi.OrgParam

	Policy  string            `query:"policy" doc:"only this policy"`
	Verdict string            `query:"verdict" oneof:"denies,warns,would deny,excepted,changes" doc:"only calls with this verdict"`
	Team    adminapi.PastTeam `query:"team" doc:"only calls by this team"`
	Since   adminapi.Since    `query:"since" default:"24h" doc:"start of the period: a time or a duration before now, at most 30d, rounded down to the hour"`
	Bucket  string            `query:"bucket" oneof:"hour,total" default:"total" doc:"period covered by each count"`
}

func (d *Decisions) policyCounts(ctx context.Context, s adminapi.Principal, p counted) (*PolicyCounts, error) {
	out := &PolicyCounts{From: sinceStored(p.Since, s.Now).UTC().Truncate(time.Hour), To: s.Now.UTC(), Counts: []PolicyCount{}}
	counts, err := d.Counts(ctx, string(p.Org), out.From, out.To)
	if err != nil {
		return nil, err
	}
	sums := make(map[PolicyCount]int64)
	for _, c := range counts {
		if p.Policy != "" && p.Policy != c.Policy || p.Verdict != "" && p.Verdict != c.Verdict || p.Team != "" && string(p.Team) != c.Team {
			continue
		}
		what := PolicyCount{Hour: c.Hour, Policy: c.Policy, Verdict: c.Verdict, Team: c.Team}
		if p.Bucket == "total" {
			what.Hour = time.Time{}
		}
		if sums[what] == 0 {
			out.Counts = append(out.Counts, what)
		}
		sums[what] += c.Calls
	}
	for i := range out.Counts {
		out.Counts[i].Calls = sums[out.Counts[i]]
	}
	return out, nil
}

// Counts returns the number of calls of an organisation for each policy, verdict, team and hour. The hours that contain the times first and
// last are included.
func (d *Decisions) Counts(ctx context.Context, org string, first, last time.Time) ([]PolicyCount, error) {
	d.counter.write(ctx, d.today) // include the counts of this process
	return d.counter.store.List(ctx, org, first, last)
}
