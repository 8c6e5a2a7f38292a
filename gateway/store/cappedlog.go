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

// CappedLog is a set of named lists of lines, each of which keeps only its newest lines. It is safe for concurrent use. It does not own its
// client.
type CappedLog struct {
	// Client is the Redis client.
	Client Client
	// Prefix is the prefix of all keys.
	Prefix string
	// MaxLines is the maximum number of lines per list. Retention is the lifetime of a line.
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

// linesAtOnce is the number of lines that the first exchange of a read returns, and maxLinesAtOnce the most that a later one returns.
const linesAtOnce, maxLinesAtOnce = 200, 800

// key returns the Redis key of a list.
func (j *CappedLog) key(name string) string { return j.Prefix + "{" + name + "}" }

// Add appends a line without an ID to a list.
func (j *CappedLog) Add(ctx context.Context, name string, text []byte) error {
	_, err := j.Append(ctx, Line{List: name, Text: text})
	return err
}

// Append appends lines to their lists. It also removes the oldest lines of lists that exceed their maximum length, and lines that had
// already expired at the previous write. It returns the number of lines appended, which is len(lines) if err is nil.
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

// Each calls visit with the lines between two positions, newest first and including both, until visit returns false. Position "+" is the
// newest line and "-" the oldest. A time in Unix milliseconds is the position of all lines of that millisecond.
func (j *CappedLog) Each(ctx context.Context, name, newest, oldest string, visit func(Line) bool) error {
	for n := int64(linesAtOnce); ; n = min(2*n, maxLinesAtOnce) { // a long search takes few exchanges, a short one reads little
		entries, err := j.Client.XRevRangeN(ctx, j.key(name), newest, oldest, n).Result()
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
		if int64(len(entries)) < n {
			return nil
		}
	}
}

// After returns the lines after a position, oldest first. If there are more than limit lines, it returns the newest of them. kept reports
// whether all lines after the position were read and the line at the position still exists. If kept is false and fewer than limit lines are
// returned, lines after the position may have been removed.
func (j *CappedLog) After(ctx context.Context, name, position string, limit int) (lines []Line, kept bool, err error) {
	err = j.Each(ctx, name, "+", position, func(l Line) bool {
		if kept = l.Position == position; !kept {
			lines = append(lines, l)
		}
		return !kept && len(lines) < limit
	})
	slices.Reverse(lines)
	return lines, kept, err
}

// End returns the position of the newest line of a list, "0-0" if the list is empty.
func (j *CappedLog) End(ctx context.Context, name string) (position string, err error) {
	last, err := j.Client.XRevRangeN(ctx, j.key(name), "+", "-", 1).Result()
	if err != nil || len(last) == 0 {
		return "0-0", wrapUnavailable(err)
	}
	return last[0].ID, nil
}

// part returns the Redis key of the text with the name item that belongs to a list.
func (j *CappedLog) part(name, item string) string { return j.key(name) + "#" + item }

// Put stores a text under a name in a list. The text expires after Retention.
func (j *CappedLog) Put(ctx context.Context, name, item string, text []byte) error {
	return wrapUnavailable(j.Client.Set(ctx, j.part(name, item), text, j.Retention).Err())
}

// Get returns the text stored under a name in a list, or nil if the list has no such name.
func (j *CappedLog) Get(ctx context.Context, name, item string) ([]byte, error) {
	text, err := j.Client.Get(ctx, j.part(name, item)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return text, wrapUnavailable(err)
}

// Drop deletes the text or the claim stored under a name in a list.
func (j *CappedLog) Drop(ctx context.Context, name, item string) error {
	return wrapUnavailable(j.Client.Del(ctx, j.part(name, item)).Err())
}

// Claim claims a name in a list. It returns false if the name is already claimed. A claim ends when the name is dropped, or after
// Retention.
func (j *CappedLog) Claim(ctx context.Context, name, item string) (bool, error) {
	err := j.Client.SetArgs(ctx, j.part(name, item), "claimed", redis.SetArgs{Mode: "NX", TTL: j.Retention}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, wrapUnavailable(err)
}
