package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// CappedLog keeps the latest lines of named lists. It is safe for concurrent use. It does not own its client.
type CappedLog struct {
	// Client is the Redis client.
	Client Client
	// Prefix is the prefix of all keys.
	Prefix string
	// MaxLines is the number of lines kept per list, Retention their lifetime.
	MaxLines  int64
	Retention time.Duration

	clock atomic.Int64 // Redis time of the last write in Unix ms; 0 before the first
}

// Line is a line of a list.
type Line struct {
	// List is the name of the list.
	List string
	// ID is an identifier for the reader. It need not be unique.
	ID   string
	Text []byte
	// Position is the Redis time in Unix ms, a hyphen, and a number. Positions of a list increase. It is assigned by Append.
	Position string
}

// linesAtOnce is the number of lines read at once.
const linesAtOnce = 200

// key returns the Redis key of a list.
func (j *CappedLog) key(name string) string { return j.Prefix + "{" + name + "}" }

// Add appends a line without an ID to a list.
func (j *CappedLog) Add(ctx context.Context, name string, text []byte) error {
	_, err := j.Append(ctx, Line{List: name, Text: text})
	return err
}

// Append appends lines to their lists. It also removes excess lines from these lists, and lines that had expired at the last write. It
// returns the number of lines appended, which is len(lines) if err is nil.
func (j *CappedLog) Append(ctx context.Context, lines ...Line) (added int, err error) {
	cmds := make([]*redis.StringCmd, len(lines))
	oldest := strconv.FormatInt(max(0, j.clock.Load()-j.Retention.Milliseconds()), 10)
	_, err = j.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		lists := make(map[string]bool)
		for i, l := range lines {
			lists[l.List] = true
			cmds[i] = p.XAdd(ctx, &redis.XAddArgs{Stream: j.key(l.List), MaxLen: j.MaxLines, Values: []any{l.ID, l.Text}})
		}
		for name := range lists {
			p.XTrimMinID(ctx, j.key(name), oldest)
			p.PExpire(ctx, j.key(name), j.Retention)
		}
		return nil
	})
	for _, cmd := range cmds {
		if cmd.Val() != "" {
			added++
			ms, _, _ := strings.Cut(cmd.Val(), "-")
			if now, err := strconv.ParseInt(ms, 10, 64); err == nil {
				j.clock.Store(now)
			}
		}
	}
	return added, wrapUnavailable(err)
}

// List returns the texts of a list, newest first.
func (j *CappedLog) List(ctx context.Context, name string) (texts []string, err error) {
	err = j.Each(ctx, name, "+", "-", func(l Line) bool {
		texts = append(texts, string(l.Text))
		return true
	})
	return texts, err
}

// Each calls visit with the lines between two positions, newest first and including both, until visit returns false. "+" is the position of
// the newest line, "-" of the oldest. A time in Unix ms includes all positions of that millisecond.
func (j *CappedLog) Each(ctx context.Context, name, newest, oldest string, visit func(Line) bool) error {
	for {
		entries, err := j.Client.XRevRangeN(ctx, j.key(name), newest, oldest, linesAtOnce).Result()
		if err != nil {
			return wrapUnavailable(err)
		}
		for _, e := range entries {
			newest = "(" + e.ID
			for id, value := range e.Values {
				if text, _ := value.(string); !visit(Line{name, id, []byte(text), e.ID}) {
					return nil
				}
			}
		}
		if len(entries) < linesAtOnce {
			return nil
		}
	}
}

// After returns the lines after a position, oldest first. If there are more than most lines, it returns the newest of them. kept reports
// whether the line at the position still exists. If not, and fewer than most lines are returned, lines after the position may have been
// removed.
func (j *CappedLog) After(ctx context.Context, name, place string, most int) (lines []Line, kept bool, err error) {
	err = j.Each(ctx, name, "+", place, func(l Line) bool {
		if kept = l.Position == place; !kept {
			lines = append(lines, l)
		}
		return !kept && len(lines) < most
	})
	slices.Reverse(lines)
	return lines, kept, err
}

// End returns the position of the newest line of a list, "0-0" if the list is empty.
func (j *CappedLog) End(ctx context.Context, name string) (place string, err error) {
	last, err := j.Client.XRevRangeN(ctx, j.key(name), "+", "-", 1).Result()
	if err != nil || len(last) == 0 {
		return "0-0", wrapUnavailable(err)
	}
	return last[0].ID, nil
}

// part returns the Redis key of a text that belongs to a list.
func (j *CappedLog) part(name, part string) string { return j.key(name) + "#" + part }

// Put stores a text that belongs to a list. It expires after the retention time.
func (j *CappedLog) Put(ctx context.Context, name, part string, text []byte) error {
	return wrapUnavailable(j.Client.Set(ctx, j.part(name, part), text, j.Retention).Err())
}

// Get returns a text that belongs to a list, nil if it does not exist.
func (j *CappedLog) Get(ctx context.Context, name, part string) ([]byte, error) {
	text, err := j.Client.Get(ctx, j.part(name, part)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return text, wrapUnavailable(err)
}

// Drop deletes a text that belongs to a list.
func (j *CappedLog) Drop(ctx context.Context, name, part string) error {
	return wrapUnavailable(j.Client.Del(ctx, j.part(name, part)).Err())
}

// Claim reports whether this is the first claim for part since it was dropped. A claim expires after the retention time.
func (j *CappedLog) Claim(ctx context.Context, name, part string) (bool, error) {
	err := j.Client.SetArgs(ctx, j.part(name, part), "claimed", redis.SetArgs{Mode: "NX", TTL: j.Retention}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, wrapUnavailable(err)
}
