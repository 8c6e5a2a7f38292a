package decisions

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

// Archive stores explanations in Redis. Each organisation has a list whose entries are JSON reports under the IDs of their
// decisions, which are ULIDs. It is safe for concurrent use and does not close its client.
type Archive struct{ *store.CappedLog }

// NewArchive returns an Archive whose keys start with prefix. It does not dial.
func NewArchive(client store.Client, prefix string, cfg settings.Archive) *Archive {
	return &Archive{&store.CappedLog{Client: client, Prefix: prefix, MaxLines: int64(cfg.Max), Retention: cfg.For}}
}

// Find returns the report of a decision of any of the organisations, or nil.
func (s *Archive) Find(ctx context.Context, orgs []string, id string) (json.RawMessage, error) {
	made, err := ulid.ParseStrict(id)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // no decision has it
	}
	began := ulid.Time(made.Time())
	late := began.Add(longest)
	var found json.RawMessage
	for _, org := range orgs {
		for _, in := range []struct {
			newest string
			since  time.Time
		}{{upTo(late), began}, {"+", late.Add(skew)}} { // few calls take longer than an hour
			err := s.each(ctx, org, in.newest, in.since, func(l store.Line) bool {
				if l.ID == id {
					found = l.Text
				}
				return found == nil
			})
			if err != nil || found != nil {
				return found, err
			}
		}
	}
	return nil, nil
}

// upTo returns the last stream position written by the time t.
func upTo(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// Range selects decisions by the start time of their call.
type Range struct {
	// Since and Before limit the time. A zero Before means no limit.
	Since, Before time.Time
	// Most limits the number of decisions to read, except decisions stored so late that they can have begun at Before. 0 means no limit.
	Most int
}

// List calls visit for each report of an organisation that was stored between in.Since and one hour after in.Before, the last stored first,
// until visit returns false. Calls can therefore have begun outside the range, and calls that lasted more than an hour can be missing. The
// call of this report, and the calls of all later reports, began before the time end. If there are more than in.Most reports, searched is
// the time since which all calls were visited. It is before in.Before. Otherwise, searched is zero.
func (s *Archive) List(
	ctx context.Context, org string, in Range, visit func(report json.RawMessage, end time.Time) bool,
) (searched time.Time, err error) {
	newest := "+"
	if !in.Before.IsZero() {
		newest = upTo(in.Before.Add(longest))
	}
	read := 0
	err = s.each(ctx, org, newest, in.Since, func(l store.Line) bool {
		end := storedBy(l.Position).Add(skew)
		if in.Before.IsZero() || end.Before(in.Before) {
			read++
		}
		if in.Most > 0 && read > in.Most {
			searched = end
			return false
		}
		return visit(l.Text, end)
	})
	return searched, err
}

// storedBy returns the end of the millisecond that a stream position names.
func storedBy(position string) time.Time {
	text, _, _ := strings.Cut(position, "-")
	ms, _ := strconv.ParseInt(text, 10, 64) // cannot fail
	return time.UnixMilli(ms + 1)
}

// Follow calls visit for each report of an organisation that was stored after a position, oldest first, and returns the position of the
// last report. If there are more than maxFollowed reports, only the newest are visited. An empty position means the current end of the
// list.
func (s *Archive) Follow(ctx context.Context, org, position string, visit func(report json.RawMessage)) (next string, err error) {
	if position == "" {
		return s.End(ctx, org)
	}
	lines, _, err := s.After(ctx, org, position, maxFollowed)
	if err != nil {
		return position, err
	}
	for _, l := range lines {
		position = l.Position
		visit(l.Text)
	}
	return position, nil
}

// maxFollowed limits the number of reports visited by one call of Follow.
const maxFollowed = 2000

const (
	// longest is the longest time between the start of a call and its storage for which the call is listed.
	longest = time.Hour
	// skew is the largest assumed difference between the clocks of gateways and Redis.
	skew = time.Minute
)

// each calls visit for the decisions of an organisation from a stream position back to the time since, newest first, until visit returns
// false.
func (s *Archive) each(ctx context.Context, org, newest string, since time.Time, visit func(store.Line) bool) error {
	oldest := strconv.FormatInt(max(0, since.Add(-skew).UnixMilli()), 10)
	return s.Each(ctx, org, newest, oldest, visit)
}
