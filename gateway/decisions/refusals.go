package decisions

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/store"
)

// Refusals is the number of refused calls with the same reason. Decision is the ID of the latest of these calls.
type Refusals struct {
	Calls    int64  `json:"calls"`
	Decision string `json:"decision"`
}

// Add returns the sum of two counts.
func (r Refusals) Add(other Refusals) Refusals {
	return Refusals{Calls: r.Calls + other.Calls, Decision: max(r.Decision, other.Decision)} // ULIDs sort by time
}

// dayRetention is how long Redis keeps the refusals of a day: longer than any day lasts in its time zone.
const dayRetention = 49 * time.Hour

// dayKey returns the key of the refusals of an organisation on a day, which is a date in the organisation's time zone.
func (s *Tally) dayKey(org, day string) string { return s.prefix + "{" + org + "}:refused:" + day }

// SetRefusals stores the refusals that a process has counted on a day so far, by reason. They replace what the process stored before, so that a
// write can be repeated.
func (s *Tally) SetRefusals(ctx context.Context, org, day, process string, counts map[string]Refusals) error {
	fields := make(map[string]any, len(counts))
	for reason, n := range counts {
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		fields[process+apart+reason] = text
	}
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, s.dayKey(org, day), fields)
		p.Expire(ctx, s.dayKey(org, day), dayRetention)
		return nil
	})
	return store.Unavailable(err)
}

// Refusals returns the refusals of an organisation on a day by reason, counted by all processes except one.
func (s *Tally) Refusals(ctx context.Context, org, day, except string) (map[string]Refusals, error) {
	fields, err := s.client.HGetAll(ctx, s.dayKey(org, day)).Result()
	if err != nil {
		return nil, store.Unavailable(err)
	}
	out := make(map[string]Refusals)
	for field, text := range fields {
		process, reason, _ := strings.Cut(field, apart)
		var n Refusals
		if process != except && json.Unmarshal([]byte(text), &n) == nil {
			out[reason] = out[reason].Add(n)
		}
	}
	return out, nil
}
