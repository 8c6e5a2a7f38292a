package decisions

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/store"
)

// Retention is how long Redis keeps the counts.
const Retention = 30 * 24 * time.Hour

// Said is the subject of a count: a policy's verdict on calls of a team, in an hour.
type Said struct {
	Hour                  time.Time
	Policy, Verdict, Team string
}

// Total is how often that happened.
type Total struct {
	Said
	Calls int64
}

// Tally keeps counts. It is safe for concurrent use. It does not own its client.
type Tally struct {
	client redis.Cmdable
	prefix string
}

// NewTally returns a store whose keys begin with prefix. It does not dial.
func NewTally(client redis.Cmdable, prefix string) *Tally { return &Tally{client, prefix} }

// key is that of an hour of an organisation.
func (s *Tally) key(org string, hour time.Time) string {
	return s.prefix + "{" + org + "}:" + strconv.FormatInt(hour.Unix()/3600, 10)
}

// apart stands between the parts of a field: no id has it.
const apart = "\x00"

// Add adds counts of an organisation.
func (s *Tally) Add(ctx context.Context, org string, counts map[Said]int64) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		keys := make(map[string]bool)
		for said, n := range counts {
			key := s.key(org, said.Hour)
			keys[key] = true
			p.HIncrBy(ctx, key, strings.Join([]string{said.Policy, said.Verdict, said.Team}, apart), n)
		}
		for key := range keys {
			p.Expire(ctx, key, Retention+time.Hour)
		}
		return nil
	})
	return store.Unavailable(err)
}

// atOnce is how many hours are read at once.
const atOnce = 100

// List returns the counts of an organisation from the hour of a time to that of another, by hour, policy, verdict and team.
func (s *Tally) List(ctx context.Context, org string, from, to time.Time) ([]Total, error) {
	var hours []time.Time
	for h := from.UTC().Truncate(time.Hour); !h.After(to); h = h.Add(time.Hour) {
		hours = append(hours, h)
	}
	var out []Total
	for chunk := range slices.Chunk(hours, atOnce) {
		found := make([]*redis.MapStringStringCmd, len(chunk))
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, hour := range chunk {
				found[i] = p.HGetAll(ctx, s.key(org, hour))
			}
			return nil
		})
		if err != nil {
			return nil, store.Unavailable(err)
		}
		for i, cmd := range found {
			for field, text := range cmd.Val() {
				parts := strings.Split(field, apart)
				if n, err := strconv.ParseInt(text, 10, 64); err == nil && len(parts) == 3 { // others are of another version
					out = append(out, Total{Said{chunk[i], parts[0], parts[1], parts[2]}, n})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Total) int {
		return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Team, b.Team))
	})
	return out, nil
}
