package decisions

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/store"
)

// Retention is how long Redis keeps the counts.
const Retention = 30 * 24 * time.Hour

// Said is the subject of a count: a policy's verdict on calls of a team, in an hour.
type Said struct {
	Hour                  time.Time
	Policy, Verdict, Team string
}

// Tally keeps counts. It is safe for concurrent use. It does not own its client.
type Tally struct{ hours, days store.Hashes }

// NewTally returns a store whose keys begin with prefix. It does not dial.
func NewTally(client store.Client, prefix string) *Tally {
	return &Tally{store.Hashes{Client: client, Prefix: prefix, TTL: Retention + time.Hour}, store.Hashes{Client: client, Prefix: prefix, TTL: dayRetention}}
}

// hourOf names an hour of an organisation.
func hourOf(org string, hour time.Time) string {
	return "{" + org + "}:" + strconv.FormatInt(hour.Unix()/3600, 10)
}

// apart stands between the parts of a field: no id has it.
const apart = "\x00"

// Add adds counts of an organisation.
func (s *Tally) Add(ctx context.Context, org string, counts map[Said]int64) error {
	hours := make(map[string]map[string]int64)
	for said, n := range counts {
		hour := hourOf(org, said.Hour)
		if hours[hour] == nil {
			hours[hour] = make(map[string]int64)
		}
		hours[hour][strings.Join([]string{said.Policy, said.Verdict, said.Team}, apart)] = n
	}
	return s.hours.Add(ctx, hours)
}

// List returns the counts of an organisation from the hour of one time to the hour of another, by hour, policy, verdict and team.
func (s *Tally) List(ctx context.Context, org string, from, to time.Time) ([]PolicyCount, error) {
	var hours []time.Time
	var names []string
	for h := from.UTC().Truncate(time.Hour); !h.After(to); h = h.Add(time.Hour) {
		hours, names = append(hours, h), append(names, hourOf(org, h))
	}
	found, err := s.hours.Get(ctx, names...)
	if err != nil {
		return nil, err
	}
	var out []PolicyCount
	for i, fields := range found {
		for field, text := range fields {
			parts := strings.Split(field, apart)
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && len(parts) == 3 { // others are of another version
				out = append(out, PolicyCount{hours[i], parts[0], parts[1], parts[2], n})
			}
		}
	}
	slices.SortFunc(out, func(a, b PolicyCount) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Team, b.Team))
	})
	return out, nil
}
