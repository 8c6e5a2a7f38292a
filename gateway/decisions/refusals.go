package decisions

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Refusals is the number of calls refused for the same reason. Decision is the decision ID of the
// latest call.
type Refusals struct {
	Calls    int64  `json:"calls"`
	Decision string `json:"decision"`
}

// Add returns the sum of two counts.
func (r Refusals) Add(other Refusals) Refusals {
	return Refusals{Calls: r.Calls + other.Calls, Decision: max(r.Decision, other.Decision)} // ULIDs sort by time
}

// dayRetention is how long Redis stores the refusals of a day. It is longer than a day in any time zone.
const dayRetention = 49 * time.Hour

// refusedOn returns the key for the refusals of an organisation on a date in the organisation's time zone.
func refusedOn(org, day string) string { return "{" + org + "}:refused:" + day }

// SetRefusals stores the refusals that a process has counted so far on a day, by reason. It replaces the counts that the process stored
// earlier for the day, so a write can be repeated.
func (s *CountStore) SetRefusals(ctx context.Context, org, day, process string, counts map[string]Refusals) error {
	fields := make(map[string]any, len(counts))
	for reason, n := range counts {
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		fields[process+apart+reason] = text
	}
	return s.days.Set(ctx, refusedOn(org, day), fields)
}

// Refusals returns the refusals of an organisation on a day by reason, summed over all processes except the given one.
func (s *CountStore) Refusals(ctx context.Context, org, day, except string) (map[string]Refusals, error) {
	found, err := s.days.Get(ctx, refusedOn(org, day))
	if err != nil {
		return nil, err
	}
	out := make(map[string]Refusals)
	for field, text := range found[0] {
		process, reason, _ := strings.Cut(field, apart)
		var n Refusals
		if process != except && json.Unmarshal([]byte(text), &n) == nil {
			out[reason] = out[reason].Add(n)
		}
	}
	return out, nil
}
