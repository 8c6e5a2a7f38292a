package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/spend"
)

// rolled is the key of what the roll-ups of an organisation are at.
func (s *Store) rolled(org string) string { return s.prefix + "{" + org + "}:rolled" }

// bucket is the key of the roll-up of one unit of time.
func (s *Store) bucket(org string, u spend.Unit, start time.Time) string {
	return s.prefix + "{" + org + "}:" + string(u) + ":" + strconv.FormatInt(start.Unix(), 10)
}

// Tally implements spend.Archive. It reads everything in one step.
func (s *Store) Tally(ctx context.Context, org string) (spend.Tally, error) {
	keys := s.keys(org)
	var clock *redis.TimeCmd
	var rolled, resources *redis.MapStringStringCmd
	var changes *redis.StringSliceCmd
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		rolled, resources, changes = p.HGetAll(ctx, s.rolled(org)), p.HGetAll(ctx, keys[1]), p.LRange(ctx, keys[4], 0, -1)
		clock = p.Time(ctx)
		return nil
	})
	if err != nil {
		return spend.Tally{}, fmt.Errorf("tally: %w: %w", spend.ErrUnavailable, err)
	}
	t := spend.Tally{Now: time.UnixMilli(clock.Val().UnixMilli())}
	for id, text := range resources.Val() {
		r, err := decodeResource(id, text)
		if err != nil {
			return t, fmt.Errorf("tally: %w", err)
		}
		t.Resources = append(t.Resources, r)
	}
	for _, text := range changes.Val() {
		c, err := decodeChange(text)
		if err != nil {
			return t, fmt.Errorf("tally: %w", err)
		}
		t.Changes = append(t.Changes, c)
	}
	if at := rolled.Val(); len(at) > 0 {
		n, err := split(at["version"]+" "+at["until"], 2)
		if err != nil {
			return t, fmt.Errorf("tally: %w", err)
		}
		t.Version, t.Until = n[0], time.UnixMilli(n[1])
		if err := json.Unmarshal([]byte(at["series"]), &t.Series); err != nil {
			return t, fmt.Errorf("tally: %w", err)
		}
	}
	return t, nil
}

// decodeChange reads an entry of the list of changes; see common.lua.
func decodeChange(text string) (spend.Change, error) {
	n, lines, err := decodeRecord(text)
	if err != nil || len(n) != 3 || len(lines) != 5 {
		return spend.Change{}, errReply
	}
	var about spend.About
	if err := json.Unmarshal([]byte(lines[4]), &about); err != nil {
		return spend.Change{}, err
	}
	c := spend.Change{At: time.UnixMilli(n[0]), Rate: n[1], Once: n[2]}
	owner := spend.Owner{Team: lines[2], Key: lines[3]}
	if c.Once > 0 {
		c.Item = spend.RunOf(lines[0], owner, about)
	} else {
		c.Item = spend.ItemOf(lines[1], lines[0], owner, about)
	}
	return c, nil
}

// Post implements spend.Archive.
func (s *Store) Post(ctx context.Context, org string, p *spend.Posting) (bool, error) {
	series, err := json.Marshal(p.Series)
	if err != nil {
		return false, err
	}
	keys := s.keys(org, s.rolled(org))
	args := []any{p.Version, p.Until.UnixMilli(), series, p.Changes}
	for _, u := range []spend.Unit{spend.Hourly, spend.Daily} {
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
			args = append(args, p.Keep.End(u, start).Unix(), len(items[start])/2)
			args = append(args, items[start]...)
		}
	}
	args = append(args, len(p.Billed))
	for _, r := range p.Billed {
		args = append(args, integers(nil, r.Start.UnixMilli(), r.Micro), r.Item.Team, r.Item.Key)
	}
	reply, err := s.run(ctx, s.post, org, keys, args)
	if err != nil {
		return false, fmt.Errorf("post: %w", err)
	}
	return reply.status == 1, nil
}

// batch is how many roll-ups are read in one step.
const batch = 128

// Rollups implements spend.Archive.
func (s *Store) Rollups(ctx context.Context, org string, u spend.Unit, starts []time.Time) ([]spend.Rollup, error) {
	var out []spend.Rollup
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
			return nil, fmt.Errorf("rollups: %w: %w", spend.ErrUnavailable, err)
		}
		for i, reply := range replies {
			for text, amount := range reply.Val() {
				r := spend.Rollup{Start: starts[i].UTC()}
				var err error
				r.Micro, err = strconv.ParseInt(amount, 10, 64)
				if err := errors.Join(err, json.Unmarshal([]byte(text), &r.Item)); err != nil {
					return nil, fmt.Errorf("rollups: %w", err)
				}
				out = append(out, r)
			}
		}
		starts = starts[n:]
	}
	return out, nil
}
