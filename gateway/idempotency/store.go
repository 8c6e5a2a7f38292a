package idempotency

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed swap.lua
var swapSource string

// ErrUnavailable means that the store cannot be asked.
var ErrUnavailable = errors.New("idempotency: the store cannot be asked")

// Store keeps records in Redis. It is safe for concurrent use. It does not own its
// client.
type Store struct {
	client redis.UniversalClient
	prefix string
	swap   *redis.Script
}

// New returns a store whose keys begin with prefix. It does not dial.
func New(client redis.UniversalClient, prefix string) *Store {
	return &Store{client: client, prefix: prefix, swap: redis.NewScript(swapSource)}
}

// Entry is a record as it was found. The zero Entry is none.
type Entry struct {
	// Record is nil if there is none.
	Record *Record
	// Now is the store's clock.
	Now time.Time

	raw string // as it is stored
}

// look stands for an entry that no entry is equal to.
const look = "?"

// Get returns the record with an id.
func (s *Store) Get(ctx context.Context, org, id string) (Entry, error) {
	e, _, err := s.replace(ctx, org, id, look, "", 0)
	return e, err
}

// Swap replaces an entry that was read before, or writes the first if that is the
// zero Entry; nil deletes it. It returns the entry there is afterwards, and whether
// it is the new one.
func (s *Store) Swap(ctx context.Context, org, id string, old Entry, next *Record, keep time.Duration) (Entry, bool, error) {
	value := ""
	if next != nil {
		text, err := json.Marshal(next)
		if err != nil {
			return Entry{}, false, fmt.Errorf("encode a record: %w", err)
		}
		value = string(text)
	}
	return s.replace(ctx, org, id, old.raw, value, keep)
}

// Key returns the key of the record with an id: as long as it does not exist, there is
// no such record.
func (s *Store) Key(org, id string) string { return s.prefix + "{" + org + "}:" + id }

// Mark returns the key and value of what Claim writes, for a store that writes it
// with what else the call has led to. Its time is not told.
func (s *Store) Mark(org, resource, call string) (key, value string) {
	return s.Key(org, made+resource), "0 " + strconv.Quote(call)
}

// made begins the ids of what was claimed.
const made = "made/"

// Claim makes a resource that of a call, and reports whether it is: false if another
// call has it already.
func (s *Store) Claim(ctx context.Context, org, resource, call string) (bool, error) {
	e, swapped, err := s.replace(ctx, org, made+resource, "", strconv.Quote(call), Keep)
	return swapped || valueOf(e.raw) == strconv.Quote(call), err
}

// replace runs the script, once more if its reply was lost: it can be repeated.
func (s *Store) replace(ctx context.Context, org, id, old, value string, keep time.Duration) (Entry, bool, error) {
	keys := []string{s.Key(org, id)}
	list, err := s.swap.Run(ctx, s.client, keys, old, value, keep.Milliseconds()).Slice()
	again := err != nil && ctx.Err() == nil
	if again {
		list, err = s.swap.Run(ctx, s.client, keys, old, value, keep.Milliseconds()).Slice()
	}
	if err != nil {
		return Entry{}, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(list) != 3 {
		return Entry{}, false, errReply
	}
	done, ok := list[0].(int64)
	have, isText := list[1].(string)
	clock, isClock := list[2].(string)
	ms, err := strconv.ParseInt(clock, 10, 64)
	if !ok || !isText || !isClock || err != nil {
		return Entry{}, false, errReply
	}
	e := Entry{Now: time.UnixMilli(ms), raw: have}
	switch {
	case done == 0 && again && old != look && valueOf(have) == value:
		done = 1 // by the try whose reply was lost
	case done == 1:
		if e.raw = ""; value != "" {
			e.raw = clock + " " + value
		}
	}
	if text := valueOf(e.raw); strings.HasPrefix(text, "{") {
		e.Record = new(Record)
		if err := json.Unmarshal([]byte(text), e.Record); err != nil {
			return Entry{}, false, fmt.Errorf("%w: %w", errReply, err)
		}
	}
	return e, done == 1, nil
}

var errReply = errors.New("idempotency: the store holds what is not written there")

// valueOf is the value of an entry.
func valueOf(raw string) string {
	_, value, _ := strings.Cut(raw, " ")
	return value
}
