package approval

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed swap.lua
var swapSource string

// Errors of a Store.
var (
	// ErrUnavailable means that the store cannot be asked.
	ErrUnavailable = errors.New("approval: the store cannot be asked")
	// ErrFull means that as many requests are pending as may be.
	ErrFull = errors.New("approval: too many requests are pending")
	// ErrNone means that no request has an id.
	ErrNone = errors.New("approval: no such request")

	errReply = errors.New("approval: the store holds what is not written there")
)

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

// Entry is a record as it was found.
type Entry struct {
	// Question is the name it is kept under.
	Question string
	// Record is nil if there is none. It must not be changed.
	Record *Record
	// Now is the store's clock.
	Now time.Time

	raw string // as it is stored
}

// look stands for a record that none is equal to.
const look = "?"

// Get returns the record of a question.
func (s *Store) Get(ctx context.Context, org, question string) (Entry, error) {
	e, _, err := s.replace(ctx, org, Entry{Question: question, raw: look}, "", &Record{})
	return e, err
}

// Swap replaces an entry that was read before. It returns the entry there is
// afterwards and whether it is the new one, or ErrFull.
func (s *Store) Swap(ctx context.Context, org string, old Entry, next *Record) (Entry, bool, error) {
	text, err := json.Marshal(next)
	if err != nil {
		return Entry{}, false, fmt.Errorf("encode a record: %w", err)
	}
	return s.replace(ctx, org, old, string(text), next)
}

// replace runs the script, once more if its reply was lost: it can be repeated.
func (s *Store) replace(ctx context.Context, org string, old Entry, value string, next *Record) (Entry, bool, error) {
	stem := s.stem(org)
	keys := []string{stem + "q:" + old.Question, stem + "all", stem + "pending", stem + "pending:" + next.Key}
	args := []any{old.raw, value, next.Until.UnixMilli(), old.Question, 0, MaxPending, MaxPendingCaller}
	if next.State == Pending {
		args[4] = 1
	}
	list, err := s.swap.Run(ctx, s.client, keys, args...).Slice()
	again := err != nil && ctx.Err() == nil
	if again {
		list, err = s.swap.Run(ctx, s.client, keys, args...).Slice()
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
	switch {
	case done == 2:
		return Entry{}, false, ErrFull
	case done == 0 && again && have == value && old.raw != look:
		done = 1 // by the try whose reply was lost
	case done == 1:
		have = value
	}
	e := Entry{Question: old.Question, Now: time.UnixMilli(ms).UTC(), raw: have}
	e.Record, err = decode(have)
	return e, done == 1, err
}

func (s *Store) stem(org string) string { return s.prefix + "{" + org + "}:" }

// decode reads a record, nil from "".
func decode(text string) (*Record, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	r := new(Record)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("%w: %w", errReply, err)
	}
	return r, nil
}

// Entries returns all records of an organisation.
func (s *Store) Entries(ctx context.Context, org string) ([]Entry, error) {
	stem := s.stem(org)
	names, err := s.client.ZRange(ctx, stem+"all", 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = stem + "q:" + name
	}
	values, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var entries []Entry
	for i, v := range values {
		text, _ := v.(string) // ended ones are nil
		r, err := decode(text)
		if err != nil {
			return nil, err
		}
		if r != nil {
			entries = append(entries, Entry{Question: names[i], Record: r, raw: text})
		}
	}
	return entries, nil
}

// Find returns the record with an id, or ErrNone.
func (s *Store) Find(ctx context.Context, org, id string) (Entry, error) {
	entries, err := s.Entries(ctx, org)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.Record.ID == id {
			return s.Get(ctx, org, e.Question) // with the store's clock
		}
	}
	return Entry{}, ErrNone
}
