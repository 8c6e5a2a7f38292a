package store

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed swap.lua
var swapSource string

// Errors of a Store.
var (
	// ErrUnavailable means that Redis could not be reached or returned an error.
	ErrUnavailable = errors.New("store unavailable")
	// ErrFull means that an index contains the maximum number of records.
	ErrFull = errors.New("store: index full")

	errReply = errors.New("store: unexpected value")
)

// Client is a Redis client.
type Client = redis.Cmdable

// wrapUnavailable wraps an error of a client in ErrUnavailable. It returns nil for nil.
func wrapUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Store stores records of type T as JSON. It is safe for concurrent use. It does not own its client.
type Store[T any] struct {
	client redis.Cmdable
	prefix string
	swap   *redis.Script
}

// New returns a store whose keys begin with prefix. It does not dial.
func New[T any](client redis.Cmdable, prefix string) *Store[T] {
	return &Store[T]{client: client, prefix: prefix, swap: redis.NewScript(swapSource)}
}

// Entry is a record as it was read.
type Entry[T any] struct {
	// ID is the ID of the record. An Entry with no other fields set represents a missing record.
	ID string
	// Record is nil if the record does not exist. It must not be changed.
	Record *T
	// Now is the time of the read by the store's clock. It is zero in results of Entries, and in results of Peek for missing records.
	Now time.Time
	// PreviousVersion and Version are the version of the organisation's records before and after the write that created the entry. They are
	// empty if the write did not change the version or its reply was lost.
	PreviousVersion, Version string

	raw string // the stored form
}

const (
	// changes is the name of the list of the latest version changes.
	changes = "changes"
	// maxChanges is the number of changes kept. A gateway that polls every second reads all records if there were more changes in a second.
	maxChanges = 256
)

// readOnly is passed as the old value to read an entry. It equals no stored value.
const readOnly = "?"

// Key returns the Redis key of a record. The record exists if and only if the key exists.
func (s *Store[T]) Key(org, id string) string { return s.prefix + "{" + org + "}:" + id }

// index returns the key of an index, which no record can have. The index without a name is the version.
func (s *Store[T]) index(org, name string) string { return s.prefix + "{" + org + "}#" + name }

// Write describes the replacement of an entry.
type Write[T any] struct {
	// Record is the new record, nil to delete the record.
	Record *T
	// TTL is the lifetime of the record, 0 for no expiry. If Until is not zero, the record expires at that time instead.
	TTL   time.Duration
	Until time.Time
	// Version makes the write change the version of the organisation's records.
	Version bool
	// Indexes lists all indexes that may contain records of this type.
	Indexes []Index
	// Evict makes room in a full index by deleting the records that expire first, instead of failing with ErrFull. An index
	// that is missing from Indexes counts a deleted record until it would have expired.
	Evict bool
}

// Index is a set of records of an organisation.
type Index struct {
	Name string
	// Exclude reports that the record is not in the index.
	Exclude bool
	// MaxRecords is the maximum number of records, 0 for no limit.
	MaxRecords int
}

// Get returns the record with the given ID.
func (s *Store[T]) Get(ctx context.Context, org, id string) (Entry[T], error) {
	e, _, err := s.replace(ctx, org, Entry[T]{ID: id, raw: readOnly}, "", Write[T]{})
	return e, err
}

// Peek is like Get, but cheaper if the record probably does not exist: for a missing record it makes one key lookup and returns a zero Now.
func (s *Store[T]) Peek(ctx context.Context, org, id string) (Entry[T], error) {
	values, err := s.client.MGet(ctx, s.Key(org, id)).Result()
	if err == nil && values[0] == nil {
		return Entry[T]{ID: id}, nil
	}
	return s.Get(ctx, org, id)
}

// Swap replaces the entry old, which was read before, if the store still has it and the new record has not expired. It returns the entry
// that the store has afterwards, and reports whether this is the new entry. It returns ErrFull if an index is full. Concurrent writers must
// write different records: if the reply was lost, Swap recognises its own write by the value.
func (s *Store[T]) Swap(ctx context.Context, org string, old Entry[T], w Write[T]) (Entry[T], bool, error) {
	value := ""
	if w.Record != nil {
		text, err := json.Marshal(w.Record)
		if err != nil {
			return Entry[T]{}, false, fmt.Errorf("encode a record: %w", err)
		}
		value = string(text)
	}
	return s.replace(ctx, org, old, value, w)
}

// replace runs the script, and repeats it if the reply was lost.
func (s *Store[T]) replace(ctx context.Context, org string, old Entry[T], value string, w Write[T]) (Entry[T], bool, error) {
	keys := []string{s.Key(org, old.ID), s.index(org, ""), s.index(org, changes)}
	args := []any{old.raw, value, w.TTL.Milliseconds(), "", "", maxChanges, ""}
	if !w.Until.IsZero() {
		args[3] = w.Until.UnixMilli()
	}
	if w.Version {
		args[4] = rand.Text()
	}
	if w.Evict {
		args[6] = "1"
	}
	for _, x := range w.Indexes {
		most := x.MaxRecords
		if x.Exclude {
			most = -1
		}
		keys, args = append(keys, s.index(org, x.Name)), append(args, most)
	}
	list, err := s.swap.Run(ctx, s.client, keys, args...).Slice()
	retry := err != nil && ctx.Err() == nil
	if retry {
		list, err = s.swap.Run(ctx, s.client, keys, args...).Slice()
	}
	if err != nil {
		return Entry[T]{}, false, wrapUnavailable(err)
	}
	done, have, clock, was, err := parseSwapped(list)
	if err != nil {
		return Entry[T]{}, false, err
	}
	e := Entry[T]{ID: old.ID, Now: clock}
	switch {
	case done == 2:
		return Entry[T]{}, false, ErrFull
	case done == 0 && retry && old.raw != readOnly && valueOf(have) == value:
		done = 1 // done by the attempt whose reply was lost
	case done == 1:
		have = ""
		if value != "" {
			have = strconv.FormatInt(clock.UnixMilli(), 10) + " " + value
		}
		if w.Version {
			e.PreviousVersion, e.Version = was, args[4].(string)
		}
	}
	e.raw = have
	e.Record, err = decode[T](have)
	return e, done == 1, err
}

// parseSwapped parses the reply of the script.
func parseSwapped(list []any) (done int64, have string, clock time.Time, was string, err error) {
	if len(list) != 4 {
		return 0, "", clock, "", errReply
	}
	done, isInt := list[0].(int64)
	have, isText := list[1].(string)
	now, isClock := list[2].(string)
	was, isVersion := list[3].(string)
	ms, err := strconv.ParseInt(now, 10, 64)
	if !isInt || !isText || !isClock || !isVersion || err != nil {
		return 0, "", clock, "", errReply
	}
	return done, have, time.UnixMilli(ms).UTC(), was, nil
}

// valueOf returns the value part of the stored form of an entry.
func valueOf(raw string) string {
	_, value, _ := strings.Cut(raw, " ")
	return value
}

// decode returns the record of an entry, nil if it does not exist.
func decode[T any](raw string) (*T, error) {
	if raw == "" {
		return nil, nil //nolint:nilnil // the record does not exist
	}
	r := new(T)
	if err := json.Unmarshal([]byte(valueOf(raw)), r); err != nil {
		return nil, fmt.Errorf("%w: %w", errReply, err)
	}
	return r, nil
}

// Versions returns the version of each organisation's records, "" if none was written with a version. Equal versions mean equal records;
// the reverse need not hold.
func (s *Store[T]) Versions(ctx context.Context, orgs []string) (map[string]string, error) {
	replies := make([]*redis.StringCmd, len(orgs))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, org := range orgs {
			replies[i] = p.Get(ctx, s.index(org, ""))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrapUnavailable(err)
	}
	versions := make(map[string]string, len(orgs))
	for i, reply := range replies {
		version, err := reply.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, wrapUnavailable(err)
		}
		versions[orgs[i]] = version
	}
	return versions, nil
}

// Entries returns the entries of an organisation in an index.
func (s *Store[T]) Entries(ctx context.Context, org, index string) ([]Entry[T], error) {
	keys, err := s.client.ZRange(ctx, s.index(org, index), 0, -1).Result()
	if err != nil {
		return nil, wrapUnavailable(err)
	}
	entries, err := s.read(ctx, org, keys)
	return slices.DeleteFunc(entries, func(e Entry[T]) bool { return e.Record == nil }), err // expired ones
}

// Changed returns the entries that have changed since the version before. Deleted entries have a nil Record. The returned version is the
// version of these entries, and is at least as new as the version after. If ok is false, the changes are unknown: there were too many, or
// some were made by a gateway that does not list its changes.
func (s *Store[T]) Changed(ctx context.Context, org, before, after string) (version string, entries []Entry[T], ok bool, err error) {
	list, err := s.client.LRange(ctx, s.index(org, changes), 0, -1).Result()
	if err != nil {
		return "", nil, false, wrapUnavailable(err)
	}
	version, keys := changedKeys(list, before, after)
	if version == "" {
		return "", nil, false, nil
	}
	entries, err = s.read(ctx, org, keys)
	return version, entries, err == nil, err
}

// changedKeys returns the keys that have changed since the version before, and the version at the end of the list of changes. version is ""
// if before or after is not in the list.
func changedKeys(list []string, before, after string) (version string, keys []string) {
	met := false
	for i, change := range slices.Backward(list) {
		was, rest, _ := strings.Cut(change, " ")
		is, key, _ := strings.Cut(rest, " ")
		if i == len(list)-1 {
			version = is
		}
		met = met || is == after
		keys = append(keys, key)
		if was == before && met {
			slices.Sort(keys)
			return version, slices.Compact(keys)
		}
		if i > 0 && !strings.HasPrefix(withoutPrevious(list[i-1]), was+" ") {
			break // a change in between was not listed
		}
	}
	return "", nil
}

// withoutPrevious returns a change without its previous version.
func withoutPrevious(change string) string {
	_, rest, _ := strings.Cut(change, " ")
	return rest
}

// read returns the entries of the given keys; deleted ones have a nil Record.
func (s *Store[T]) read(ctx context.Context, org string, keys []string) ([]Entry[T], error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, wrapUnavailable(err)
	}
	entries := make([]Entry[T], len(keys))
	for i, v := range values {
		text, _ := v.(string)
		r, err := decode[T](text)
		if err != nil {
			return nil, err
		}
		entries[i] = Entry[T]{ID: strings.TrimPrefix(keys[i], s.Key(org, "")), Record: r, raw: text}
	}
	return entries, nil
}
