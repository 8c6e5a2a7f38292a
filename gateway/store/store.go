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
	// ErrUnavailable means that the store cannot be asked.
	ErrUnavailable = errors.New("the store cannot be asked")
	// ErrFull means that an index has as many records as it may.
	ErrFull = errors.New("cas: an index is full")

	errReply = errors.New("cas: the store holds what is not written there")
)

// Client asks Redis.
type Client = redis.Cmdable

// WrapUnavailable wraps an error of a client in ErrUnavailable; nil remains nil.
func WrapUnavailable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Store keeps records of a type that is written as JSON. It is safe for concurrent
// use. It does not own its client.
type Store[T any] struct {
	client redis.Cmdable
	prefix string
	swap   *redis.Script
}

// New returns a store whose keys begin with prefix. It does not dial.
func New[T any](client redis.Cmdable, prefix string) *Store[T] {
	return &Store[T]{client: client, prefix: prefix, swap: redis.NewScript(swapSource)}
}

// Entry is a record as it was found.
type Entry[T any] struct {
	// ID is the id of the record. An Entry that has nothing else is none.
	ID string
	// Record is nil if there is none. It must not be changed.
	Record *T
	// Now is the store's clock, zero in entries of Entries, and of Look if there is none.
	Now time.Time
	// PreviousVersion and Version are the version of the organisation's records before and after the
	// write that made the entry; empty where there was none that changes it, or the reply
	// to it was lost.
	PreviousVersion, Version string

	raw string // as it is stored
}

const (
	// changes is the index of the latest changes of the version.
	changes = "changes"
	// maxChanges is how many are kept: a gateway that polls each second reads all records
	// where there were more in a second.
	maxChanges = 256
)

// readOnlyOrgs stands for an entry that no entry is equal to.
const readOnly = "?"

// Key returns the key of the record with an id: as long as it does not exist, there is
// no such record.
func (s *Store[T]) Key(org, id string) string { return s.prefix + "{" + org + "}:" + id }

// index returns the key of an index, which no record has. The one without a name is that
// of the version.
func (s *Store[T]) index(org, name string) string { return s.prefix + "{" + org + "}#" + name }

// Write replaces an entry.
type Write[T any] struct {
	// Record is the new record, nil to delete what there is.
	Record *T
	// TTL is how long it is kept, 0 for ever; or Until, if that is set, when it ends.
	TTL   time.Duration
	Until time.Time
	// Version says that the organisation's records get another version.
	Version bool
	// Indexes are the indexes that records of this type may be in.
	Indexes []Index
	// Evict makes room in a full index: the records that end first are deleted, and the write does not fail with ErrFull. Indexes that are
	// not in In count a deleted record until its end.
	Evict bool
}

// Index is a set of records of an organisation.
type Index struct {
	Name string
	// Exclude says that the record is not in it.
	Exclude bool
	// MaxLinesecords is how many records it may have, 0 for any number.
	MaxRecords int
}

// Get returns the record with an id.
func (s *Store[T]) Get(ctx context.Context, org, id string) (Entry[T], error) {
	e, _, err := s.replace(ctx, org, Entry[T]{ID: id, raw: readOnly}, "", Write[T]{})
	return e, err
}

// Peek is Get where a record is not expected: if there is none, it costs a plain read
// only, and Now is zero.
func (s *Store[T]) Peek(ctx context.Context, org, id string) (Entry[T], error) {
	values, err := s.client.MGet(ctx, s.Key(org, id)).Result()
	if err == nil && values[0] == nil {
		return Entry[T]{ID: id}, nil
	}
	return s.Get(ctx, org, id)
}

// Swap replaces an entry that was read before, unless the new record has ended. It
// returns the entry there is afterwards and whether it is the new one, or ErrFull. A
// record must be unlike those that others may write in its place.
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

// replace runs the script, once more if its reply was lost: it can be repeated.
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
	again := err != nil && ctx.Err() == nil
	if again {
		list, err = s.swap.Run(ctx, s.client, keys, args...).Slice()
	}
	if err != nil {
		return Entry[T]{}, false, WrapUnavailable(err)
	}
	done, have, clock, was, err := parseSwapped(list)
	if err != nil {
		return Entry[T]{}, false, err
	}
	e := Entry[T]{ID: old.ID, Now: clock}
	switch {
	case done == 2:
		return Entry[T]{}, false, ErrFull
	case done == 0 && again && old.raw != readOnly && valueOf(have) == value:
		done = 1 // by the try whose reply was lost
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

// parseSwapped reads the reply of the script.
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

// valueOf is the value of an entry, "" if there is none.
func valueOf(raw string) string {
	_, value, _ := strings.Cut(raw, " ")
	return value
}

// decode reads the record of an entry, nil if there is none.
func decode[T any](raw string) (*T, error) {
	if raw == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	r := new(T)
	if err := json.Unmarshal([]byte(valueOf(raw)), r); err != nil {
		return nil, fmt.Errorf("%w: %w", errReply, err)
	}
	return r, nil
}

// Versions returns the version of the records of each organisation, "" if none was
// written with one. Two versions of the same records may differ, but the same version is
// never that of different ones.
func (s *Store[T]) Versions(ctx context.Context, orgs []string) (map[string]string, error) {
	replies := make([]*redis.StringCmd, len(orgs))
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, org := range orgs {
			replies[i] = p.Get(ctx, s.index(org, ""))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, WrapUnavailable(err)
	}
	versions := make(map[string]string, len(orgs))
	for i, reply := range replies {
		version, err := reply.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, WrapUnavailable(err)
		}
		versions[orgs[i]] = version
	}
	return versions, nil
}

// Entries returns the records of an organisation that are in an index.
func (s *Store[T]) Entries(ctx context.Context, org, index string) ([]Entry[T], error) {
	keys, err := s.client.ZRange(ctx, s.index(org, index), 0, -1).Result()
	if err != nil {
		return nil, WrapUnavailable(err)
	}
	entries, err := s.read(ctx, org, keys)
	return slices.DeleteFunc(entries, func(e Entry[T]) bool { return e.Record == nil }), err // ended ones
}

// Changed returns the entries of an organisation that have changed between two versions,
// those that are gone without a record, and the version that they are of: until, or one
// that is later. ok is false where that is not known, because there were too many changes
// or some were made by a gateway that does not list them.
func (s *Store[T]) Changed(ctx context.Context, org, since, until string) (version string, entries []Entry[T], ok bool, err error) {
	list, err := s.client.LRange(ctx, s.index(org, changes), 0, -1).Result()
	if err != nil {
		return "", nil, false, WrapUnavailable(err)
	}
	version, keys := changedKeys(list, since, until)
	if version == "" {
		return "", nil, false, nil
	}
	entries, err = s.read(ctx, org, keys)
	return version, entries, err == nil, err
}

// changedKeys returns the keys of entries that the end of a list of changes names, back to
// the version since, and the version that it leads to, "" if until or since is not among
// those on the way.
func changedKeys(list []string, since, until string) (version string, keys []string) {
	met := false
	for i, change := range slices.Backward(list) {
		was, rest, _ := strings.Cut(change, " ")
		after, key, _ := strings.Cut(rest, " ")
		if i == len(list)-1 {
			version = after
		}
		met = met || after == until
		keys = append(keys, key)
		if was == since && met {
			slices.Sort(keys)
			return version, slices.Compact(keys)
		}
		if i > 0 && !strings.HasPrefix(withoutPrevious(list[i-1]), was+" ") {
			break // another change came between, which is not listed
		}
	}
	return "", nil
}

// withoutPrevious is a change without the version before it.
func withoutPrevious(change string) string {
	_, rest, _ := strings.Cut(change, " ")
	return rest
}

// read returns the entries of keys, those that are gone without a record.
func (s *Store[T]) read(ctx context.Context, org string, keys []string) ([]Entry[T], error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, WrapUnavailable(err)
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
