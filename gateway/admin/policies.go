package admin

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/row"
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

// policyCounts are counts as they are answered, of whole hours.
type policyCounts struct {
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Counts []PolicyCount `json:"counts"`
}

// counting says which counts are shown.
type counting struct {
	row.Scoped

	Policy  string       `query:"policy" doc:"only this policy"`
	Verdict string       `query:"verdict" oneof:"denies,warns,would deny,excepted,changes" doc:"only this verdict"`
	Team    row.PastTeam `query:"team" doc:"only calls of this team"`
	Since   row.Since    `query:"since" default:"24h" doc:"from the hour of a time, or of a duration before now, at most 30d, until now"`
	Bucket  string       `query:"bucket" oneof:"hour,total" default:"total" doc:"time that a count sums up"`
}

// countedFor is how long counts are kept.
const countedFor = 30 * 24 * time.Hour

func (d Deps) policyRows() []row.Row {
	return []row.Row{
		{
			Pattern: "GET /admin/policies/counts", Summary: "The number of calls by policy and verdict", Watched: true, Role: row.Viewer, About: row.OfOrg, Ask: row.Do(d.counts),
			Commands: []row.Command{{
				Use: "policy counts ORG", Short: "Show on how many calls policies denied, warned, or would have denied", Example: "tollgate policy counts acme --since 7d\ntollgate policy counts acme --policy gpu_count --verdict 'would deny' --bucket hour",
				Long: `Shows on how many calls each policy denied, warned, would have denied (mode shadow),
was lifted by an exception or changed something, by team: so you see the effect of a
policy before you enforce it. Counts are kept for 30 days, by whole hours.`,
			}},
		},
	}
}

func (d Deps) counts(ctx context.Context, s row.Scope, p counting) (*policyCounts, error) {
	from := time.Time(p.Since)
	if oldest := s.Now.Add(-countedFor); from.Before(oldest) {
		from = oldest
	}
	out := &policyCounts{From: from.UTC().Truncate(time.Hour), To: s.Now.UTC(), Counts: []PolicyCount{}}
	counts, err := d.Decisions.Counts(ctx, string(p.Org), out.From, out.To)
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
