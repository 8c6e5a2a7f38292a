package decisions

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// PolicyCount is on how many calls a policy said something.
type PolicyCount struct {
	// Hour is the one that is counted, absent where hours are added up.
	Hour   time.Time `json:"hour,omitzero"`
	Policy string    `json:"policy"`
	// Verdict is denies, warns, would deny, excepted or changes.
	Verdict string `json:"verdict"`
	Team    string `json:"team,omitempty"`
	Calls   int64  `json:"calls"`
}

// PolicyCounts are counts of whole hours.
type PolicyCounts struct {
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Counts []PolicyCount `json:"counts"`
}

// counted says which counts are shown.
type counted struct {
	adminapi.OrgParam

	Policy  string            `query:"policy" doc:"only this policy"`
	Verdict string            `query:"verdict" oneof:"denies,warns,would deny,excepted,changes" doc:"only this verdict"`
	Team    adminapi.PastTeam `query:"team" doc:"only calls of this team"`
	Since   adminapi.Since    `query:"since" default:"24h" doc:"from the hour of a time, or of a duration before now, at most 30d, until now"`
	Bucket  string            `query:"bucket" oneof:"hour,total" default:"total" doc:"time that a count sums up"`
}

func (d *Decisions) policyCounts(ctx context.Context, s adminapi.Principal, p counted) (*PolicyCounts, error) {
	from := time.Time(p.Since)
	if oldest := s.Now.Add(-Retention); from.Before(oldest) {
		from = oldest
	}
	out := &PolicyCounts{From: from.UTC().Truncate(time.Hour), To: s.Now.UTC(), Counts: []PolicyCount{}}
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

// Counts returns the number of calls by verdict of an organisation's policies, by hour, from one hour to another.
func (d *Decisions) Counts(ctx context.Context, org string, from, to time.Time) ([]PolicyCount, error) {
	if d.deps.Config().Org(org) == nil {
		return nil, adminapi.ErrUnknownOrg
	}
	d.counter.write(ctx, d.today) // the counts of this process are among them
	return d.counter.store.List(ctx, org, from, to)
}
