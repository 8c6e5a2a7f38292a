package decisions

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
)

// Archive keeps explanations in Redis: a list for each organisation, whose lines are reports in JSON under the IDs of their decisions, ULIDs. It
// is safe for concurrent use. It does not own its client.
type Archive struct{ *store.CappedLog }

// NewArchive returns a store whose keys begin with prefix. It does not dial.
func NewArchive(client store.Client, prefix string, cfg settings.Archive) *Archive {
	return &Archive{&store.CappedLog{Client: client, Prefix: prefix, MaxLines: int64(cfg.Max), Retention: cfg.For}}
}

// Find returns the report of a decision of any of some organisations, nil if none has
// it.
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
		}{{upTo(late), began}, {"+", late.Add(skew)}} { // few take longer than an hour
			err := s.each(ctx, org, in.newest, in.since, func(of string, report json.RawMessage) bool {
				if of == id {
					found = report
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

// upTo returns the last place of a stream that was kept by a time.
func upTo(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// Range is a time in which decisions began.
type Range struct {
	// Since and Before bound it; the zero Before does not.
	Since, Before time.Time
	// Most is how many decisions are read; 0 is all.
	Most int
}

// List calls visit with the reports of an organisation in a range, last kept first, until it returns false. All that began since then are
// among them, and all that began before and took no longer than an hour. whole is false if there are more than are read.
func (s *Archive) List(ctx context.Context, org string, in Range, visit func(report json.RawMessage) bool) (whole bool, err error) {
	newest := "+"
	if !in.Before.IsZero() {
		newest = upTo(in.Before.Add(longest))
	}
	read := 0
	whole = true
	err = s.each(ctx, org, newest, in.Since, func(_ string, report json.RawMessage) bool {
		if read++; in.Most > 0 && read > in.Most {
			whole = false
			return false
		}
		return visit(report)
	})
	return whole, err
}

// Follow calls visit with the reports of an organisation that were kept after a place, the oldest first, at most the newest maxFollowed, and
// returns the place after them. The place "" is after all that are kept now.
func (s *Archive) Follow(ctx context.Context, org, place string, visit func(report json.RawMessage)) (behind string, err error) {
	if place == "" {
		return s.End(ctx, org)
	}
	lines, _, err := s.After(ctx, org, place, maxFollowed)
	if err != nil {
		return place, err
	}
	for _, l := range lines {
		place = l.Position
		visit(l.Text)
	}
	return place, nil
}

// maxFollowed bounds how many reports are followed at once.
const maxFollowed = 2000

const (
	// longest is how long before it was kept a decision that is listed may have begun.
	longest = time.Hour
	// skew bounds by how much the clocks of gateways and Redis differ.
	skew = time.Minute
)

// each calls visit with the decisions of an organisation that were kept up to an entry of its stream and since a
// gateway's clock showed a time, last first, until it returns false.
func (s *Archive) each(ctx context.Context, org, newest string, since time.Time, visit func(id string, report json.RawMessage) bool) error {
	oldest := strconv.FormatInt(max(0, since.Add(-skew).UnixMilli()), 10)
	return s.Each(ctx, org, newest, oldest, func(l store.Line) bool { return visit(l.ID, l.Text) })
}
