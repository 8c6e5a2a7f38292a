package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// rolled returns the key of the progress of an organisation's roll-ups, and series the key of the rolled-up series.
func (s *Store) rolled(org string) string { return s.prefix + "{" + org + "}:rolled" }
func (s *Store) series(org string) string { return s.prefix + "{" + org + "}:series" }

// bucket returns the key of the roll-ups of one unit of time.
func (s *Store) bucket(org string, u ledger.Unit, start time.Time) string {
	return s.prefix + "{" + org + "}:" + string(u) + ":" + strconv.FormatInt(start.Unix(), 10)
}

// RollupProgress implements ledger.RollupStore.
func (s *Store) RollupProgress(ctx context.Context, org string) (ledger.RollupProgress, error) {
	var at *redis.SliceCmd
	var waiting *redis.IntCmd
	var clock *redis.TimeCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		at, waiting, clock = p.HMGet(ctx, s.rolled(org), "version", "all", "transfers"), p.LLen(ctx, s.keys(org)[4]), p.Time(ctx)
		return nil
	})
	if err != nil {
		return ledger.RollupProgress{}, fmt.Errorf("read roll-up progress: %w: %w", ledger.ErrUnavailable, err)
	}
	r := ledger.RollupProgress{Now: time.UnixMilli(clock.Val().UnixMilli()), Pending: waiting.Val()}
	for i, to := range []func(n int64){func(n int64) { r.Version = n }, func(n int64) { r.Until = time.UnixMilli(n) }} {
		text, known := at.Val()[i].(string)
		if !known {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return r, fmt.Errorf("read roll-up progress: %w", err)
		}
		to(n)
	}
	if text, known := at.Val()[2].(string); known {
		if err := json.Unmarshal([]byte(text), &r.Transfers); err != nil {
			return r, fmt.Errorf("read roll-up progress: %w", err)
		}
	}
	return r, nil
}

// RollupInput implements ledger.RollupStore. Its reads are not atomic: if another posting is made in between, a posting computed from
// the result is rejected, and changes recorded in between are left for the next posting.
func (s *Store) RollupInput(ctx context.Context, org string) (t ledger.RollupInput, err error) {
	if t.RollupProgress, err = s.RollupProgress(ctx, org); err != nil {
		return t, err
	}
	if t.Until.IsZero() {
		return t, s.first(ctx, org, &t)
	}
	for t.Pending > int64(len(t.Changes)) {
		n := int64(len(t.Changes))
		texts, err := s.client.LRange(ctx, s.keys(org)[4], n, min(n+page, t.Pending)-1).Result()
		if err != nil {
			return t, fmt.Errorf("read roll-up input: %w: %w", ledger.ErrUnavailable, err)
		}
		if len(texts) == 0 {
			break // another gateway has already posted it
		}
		if err := enter(&t, texts); err != nil {
			return t, err
		}
	}
	texts, err := s.pages(ctx, s.series(org))
	if err != nil {
		return t, fmt.Errorf("read roll-up input: %w", err)
	}
	for _, text := range texts {
		var one ledger.Series
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			return t, fmt.Errorf("read roll-up input: %w", err)
		}
		t.Series = append(t.Series, one)
	}
	return t, nil
}

// first reads the input of the first roll-up in one step: the content of the ledger, and the changes that led to it.
func (s *Store) first(ctx context.Context, org string, t *ledger.RollupInput) error {
	keys := s.keys(org)
	var resources *redis.MapStringStringCmd
	var changes *redis.StringSliceCmd
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		resources, changes = p.HGetAll(ctx, keys[1]), p.LRange(ctx, keys[4], 0, -1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read roll-up input: %w: %w", ledger.ErrUnavailable, err)
	}
	records := resources.Val()
	delete(records, "") // the epoch
	for id, text := range records {
		r, err := decodeResource(id, text)
		if err != nil {
			return fmt.Errorf("read roll-up input: %w", err)
		}
		t.Resources = append(t.Resources, r)
	}
	return enter(t, changes.Val())
}

func enter(t *ledger.RollupInput, changes []string) error {
	for _, text := range changes {
		c, err := decodeChange(text)
		if err != nil {
			return fmt.Errorf("read roll-up input: %w", err)
		}
		t.Changes = append(t.Changes, c)
	}
	return nil
}

// decodeChange decodes an entry of the list of changes; see ledger.lua.
func decodeChange(text string) (ledger.Change, error) {
	n, lines, err := decodeRecord(text)
	if err != nil || len(n) != 3 || len(lines) != 5 {
		return ledger.Change{}, errReply
	}
	var about ledger.Metadata
	if err := json.Unmarshal([]byte(lines[4]), &about); err != nil {
		return ledger.Change{}, err
	}
	c := ledger.Change{At: time.UnixMilli(n[0]), Rate: n[1], Once: n[2]}
	owner := ledger.Owner{Team: lines[2], Key: lines[3]}
	if c.Once != 0 {
		c.Item = ledger.NewRunItem(lines[0], owner, about)
	} else {
		c.Item = ledger.NewItem(lines[1], lines[0], owner, about)
	}
	return c, nil
}

// Post implements ledger.RollupStore.
func (s *Store) Post(ctx context.Context, org string, p *ledger.Posting) (bool, error) {
	keys := s.keys(org, s.rolled(org), s.series(org))
	all := ""
	if !p.Until.IsZero() {
		all = strconv.FormatInt(p.Until.UnixMilli(), 10)
	}
	args := []any{p.Version, all, p.Changes, len(p.Series)}
	for _, one := range p.Series {
		text, err := json.Marshal(one)
		if err != nil {
			return false, err
		}
		if one.Rate == 0 {
			text = nil
		}
		args = append(args, strings.Join([]string{one.Item.Resource, one.Item.Team, one.Item.Key}, "\n"), text)
	}
	for _, u := range []ledger.Unit{ledger.Hourly, ledger.Daily} {
		var starts []time.Time
		items := make(map[time.Time][]any)
		for _, r := range slices.Concat(p.Rollups, p.Billed) {
			start := u.Start(r.Start)
			if items[start] == nil {
				starts = append(starts, start)
			}
			item, err := json.Marshal(r.Item)
			if err != nil {
				return false, err
			}
			items[start] = append(items[start], item, r.Micro)
		}
		for _, start := range starts {
			keys = append(keys, s.bucket(org, u, start))
			args = append(args, p.Retention.End(u, start).Unix(), len(items[start])/2)
			args = append(args, items[start]...)
		}
	}
	corrections := p.Billed
	if p.HistoryOnly {
		corrections = nil
	}
	args = append(args, len(corrections))
	for _, r := range corrections {
		payer := p.Transfers.Payer(r.Item.Owner, r.Start)
		args = append(args, integers(r.Start.UnixMilli(), r.Micro), payer.Team, payer.Key)
	}
	reply, err := s.run(ctx, s.post, org, keys, args)
	if err != nil {
		return false, fmt.Errorf("post roll-ups: %w", err)
	}
	return reply.status == 1, nil
}

// batch is the number of roll-ups read in one step.
const batch = 128

// Rollups implements ledger.RollupStore.
func (s *Store) Rollups(ctx context.Context, org string, u ledger.Unit, starts []time.Time) ([]ledger.Rollup, error) {
	var out []ledger.Rollup
	items := make(map[string]ledger.Item) // most units have the same items
	for len(starts) > 0 {
		n := min(batch, len(starts))
		replies := make([]*redis.MapStringStringCmd, n)
		_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range replies {
				replies[i] = p.HGetAll(ctx, s.bucket(org, u, starts[i]))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read roll-ups: %w: %w", ledger.ErrUnavailable, err)
		}
		total := 0
		for _, reply := range replies {
			total += len(reply.Val())
		}
		out = slices.Grow(out, total)
		for i, reply := range replies {
			for text, amount := range reply.Val() {
				item, known := items[text]
				micro, err := strconv.ParseInt(amount, 10, 64)
				if !known {
					err = errors.Join(err, json.Unmarshal([]byte(text), &item))
					items[text] = item
				}
				if err != nil {
					return nil, fmt.Errorf("read roll-ups: %w", err)
				}
				out = append(out, ledger.Rollup{Start: starts[i].UTC(), Item: item, Micro: micro})
			}
		}
		starts = starts[n:]
	}
	return out, nil
}
