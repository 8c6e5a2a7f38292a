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

// retention is how long Redis stores the counts.
const retention = 30 * 24 * time.Hour

// CountKey identifies a count: a policy's verdict on calls by a team in one hour.
type CountKey struct {
	Hour                  time.Time
	Policy, Verdict, Team string
}

// CountStore stores counts of policy verdicts. It is safe for concurrent use and does not close its client.
type CountStore struct{ hours, days store.Hashes }

// NewCountStore returns a CountStore whose keys start with prefix. It does not dial.
func NewCountStore(client store.Client, prefix string) *CountStore {
	return &CountStore{
		store.Hashes{Client: client, Prefix: prefix, TTL: retention + time.Hour},
		store.Hashes{Client: client, Prefix: prefix, TTL: dayRetention},
	}
}

// hourOf returns the key for an hour of an organisation.
func hourOf(org string, hour time.Time) string {
	return "{" + org + "}:" + strconv.FormatInt(hour.Unix()/3600, 10)
}

// apart separates the parts of a field. IDs never contain it.
const apart = "\x00"

// Add adds counts of an organisation.
func (s *CountStore) Add(ctx context.Context, org string, counts map[CountKey]int64) error {
	hours := make(map[string]map[string]int64)
	for key, n := range counts {
		hour := hourOf(org, key.Hour)
		if hours[hour] == nil {
			hours[hour] = make(map[string]int64)
		}
		hours[hour][strings.Join([]string{key.Policy, key.Verdict, key.Team}, apart)] = n
	}
	return s.hours.Add(ctx, hours)
}

// List returns the counts of an organisation from the hour of from to the hour of to, sorted by hour, policy, verdict and team.
func (s *CountStore) List(ctx context.Context, org string, from, to time.Time) ([]PolicyCount, error) {
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
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && len(parts) == 3 { // other fields were written by another version
				out = append(out, PolicyCount{hours[i], parts[0], parts[1], parts[2], n})
			}
		}
	}
	slices.SortFunc(out, func(a, b PolicyCount) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Team, b.Team))
	})
	return out, nil
}
