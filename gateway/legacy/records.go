package legacy

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/translate"
)

// batch is the number of records that one command reads or writes.
const batch = 500

var (
	//go:embed write.lua
	writeSource string
	//go:embed prune.lua
	pruneSource string
)

// Records is a [translate.Store] that keeps its values in Redis. It is safe for concurrent use. Each operation is limited by the timeouts
// of the Redis client, and is aborted when its context is canceled.
type Records struct {
	client redis.Cmdable
	prefix string
	script *redis.Script // write.lua
	prune  *redis.Script
}

var _ translate.Store = (*Records)(nil)

// NewRecords returns a Records with the given prefix of Redis keys. It does not connect.
func NewRecords(client redis.Cmdable, prefix string) *Records {
	return &Records{
		client: client, prefix: prefix,
		script: redis.NewScript(writeSource), prune: redis.NewScript(pruneSource),
	}
}

// index returns the key of the index of one account and kind. Both names are escaped, so that distinct pairs have
// distinct keys and the hash tag is intact.
func (s *Records) index(account, kind string) string {
	return s.prefix + "{" + url.QueryEscape(account) + ":" + url.QueryEscape(kind) + "}"
}

func (s *Records) record(key translate.Key) string {
	return recordOf(s.index(key.Account, key.Kind), key.ID)
}

// recordOf returns the key of the record with the given id.
func recordOf(index, id string) string { return index + ":" + id }

// recordsOf returns the keys of several records. They are substrings of one string.
func recordsOf(index string, ids []string) []string {
	size := len(ids) * (len(index) + 1)
	for _, id := range ids {
		size += len(id)
	}
	var all strings.Builder
	all.Grow(size)
	for _, id := range ids {
		all.WriteString(index)
		all.WriteByte(':')
		all.WriteString(id)
	}
	keys := make([]string, len(ids))
	text, from := all.String(), 0
	for i, id := range ids {
		to := from + len(index) + 1 + len(id)
		keys[i], from = text[from:to], to
	}
	return keys
}

// Get implements translate.Store.
func (s *Records) Get(ctx context.Context, key translate.Key) (json.RawMessage, bool, error) {
	value, err := s.client.Get(ctx, s.record(key)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s record: %w", key.Kind, err)
	}
	return value, true, nil
}

// Put implements translate.Store.
func (s *Records) Put(ctx context.Context, key translate.Key, value json.RawMessage, ttl time.Duration) error {
	return s.write(ctx, key.Account, key.Kind, map[string]json.RawMessage{key.ID: value}, ttl, "always")
}

// AddAll implements translate.Store.
func (s *Records) AddAll(ctx context.Context, account, kind string, values map[string]json.RawMessage, ttl time.Duration) error {
	return s.write(ctx, account, kind, values, ttl, "new")
}

// write stores values by id. If when is "always", it replaces existing values; if when is "new", it keeps them.
func (s *Records) write(
	ctx context.Context, account, kind string, values map[string]json.RawMessage, ttl time.Duration, when string,
) error {
	index := s.index(account, kind)
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(values)), batch) {
		keys, args := []string{index}, []any{ttl.Milliseconds(), when}
		for _, id := range ids {
			keys = append(keys, recordOf(index, id))
			args = append(args, id, []byte(values[id]))
		}
		if err := s.script.Run(ctx, s.client, keys, args...).Err(); err != nil {
			return fmt.Errorf("write %s records: %w", kind, err)
		}
	}
	return nil
}

// Delete implements translate.Store.
func (s *Records) Delete(ctx context.Context, key translate.Key) error {
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, s.record(key))
		p.ZRem(ctx, s.index(key.Account, key.Kind), key.ID)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete %s record: %w", key.Kind, err)
	}
	return nil
}

// Find implements translate.Store.
func (s *Records) Find(ctx context.Context, account, kind string, ids []string) ([]string, error) {
	values := make([]string, 0, len(ids))
	index := s.index(account, kind)
	for chunk := range slices.Chunk(ids, batch) {
		found, err := s.client.MGet(ctx, recordsOf(index, chunk)...).Result()
		if err != nil {
			return nil, fmt.Errorf("find %s records: %w", kind, err)
		}
		for _, value := range found {
			text, _ := value.(string)
			values = append(values, text)
		}
	}
	return values, nil
}

// List implements translate.Store. The result may or may not include records written concurrently.
func (s *Records) List(ctx context.Context, account, kind string) (map[string]json.RawMessage, error) {
	values := make(map[string]json.RawMessage)
	index := s.index(account, kind)
	for cursor := uint64(0); ; {
		entries, next, err := s.client.ZScan(ctx, index, cursor, "", batch).Result()
		if err == nil {
			ids := make([]string, 0, len(entries)/2)
			for i := 0; i < len(entries); i += 2 { // each id is followed by its score
				ids = append(ids, entries[i])
			}
			err = s.collect(ctx, index, ids, values)
		}
		if err != nil {
			return nil, fmt.Errorf("list %s records: %w", kind, err)
		}
		if cursor = next; cursor == 0 {
			return values, nil
		}
	}
}

// collect reads the records of the ids into values and removes missing ones from the index.
func (s *Records) collect(ctx context.Context, index string, ids []string, values map[string]json.RawMessage) error {
	if len(ids) == 0 {
		return nil
	}
	keys := recordsOf(index, ids)
	found, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return err
	}
	pruneKeys, pruneIDs := []string{index}, []any{}
	for i, value := range found {
		if text, ok := value.(string); ok {
			values[ids[i]] = json.RawMessage(text)
			continue
		}
		pruneKeys, pruneIDs = append(pruneKeys, keys[i]), append(pruneIDs, ids[i])
	}
	if len(pruneIDs) == 0 {
		return nil
	}
	return s.prune.Run(ctx, s.client, pruneKeys, pruneIDs...).Err()
}
