package usage

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed add.lua
var addSource string

// TTL is the retention of a row after its last call.
const TTL = 400 * 24 * time.Hour

// guardTTL is the retention of batch numbers, with which a Store detects repeated batches. A Recorder retries for a far shorter time.
const guardTTL = 24 * time.Hour

// readBatch is the number of rows that Rows reads in one step.
const readBatch = 200

// Members of a row's hash: times in milliseconds since 1970, the total, and counters with their kind as prefix.
const (
	memberFirst  = "first"
	memberLast   = "last"
	memberCount  = "n"
	kindStatus   = "s:"
	kindV2       = "v:"
	kindLost     = "l:"
	counterParts = 2
)

// Store keeps rows in Redis. All keys of an organisation are in one slot of a Redis Cluster. A Store is safe for concurrent use. Each
// operation has the timeouts of the Redis client and ends early if its context does.
type Store struct {
	client redis.Cmdable
	prefix string
	script *redis.Script
}

var _ Writer = (*Store)(nil)

// NewStore returns a Store with the given prefix of Redis keys. It does not connect.
func NewStore(client redis.Cmdable, prefix string) *Store {
	return &Store{client: client, prefix: prefix, script: redis.NewScript(addSource)}
}

// base returns the prefix of the keys of an organisation. Its name is escaped inside the hash tag.
func (s *Store) base(org string) string { return s.prefix + "{" + url.QueryEscape(org) + "}" }

// id encodes a row's identity as part of its Redis key and as a member of the index.
func (w RowKey) id() string {
	b, err := json.Marshal([4]string{w.Key, w.Dialect, w.Operation, w.Agent})
	if err != nil { // strings always encode
		panic(err)
	}
	return string(b)
}

func parseID(id string) (RowKey, bool) {
	var parts []string
	if json.Unmarshal([]byte(id), &parts) != nil || len(parts) != 4 {
		return RowKey{}, false
	}
	return RowKey{Key: parts[0], Dialect: parts[1], Operation: parts[2], Agent: parts[3]}, true
}

// Write implements Writer with one script call. The batch must have a row.
func (s *Store) Write(ctx context.Context, b Batch) error {
	base := s.base(b.Org)
	newest := b.Rows[0].Last
	keys := []string{base + ":rows", base + ":agents", base + ":source:" + b.Source}
	var args []any
	for _, row := range b.Rows {
		if row.Last.After(newest) {
			newest = row.Last
		}
		other := row.RowKey
		other.Agent = OtherAgent
		keys = append(keys, base+":row:"+row.id(), base+":row:"+other.id())
		counters := row.counters()
		args = append(args, row.id(), other.id(), row.Agent, row.First.UnixMilli(), row.Last.UnixMilli(), len(counters)/counterParts)
		args = append(args, counters...)
	}
	args = slices.Concat([]any{b.Seq, TTL.Milliseconds(), newest.Add(-TTL).UnixMilli(), MaxAgents, guardTTL.Milliseconds()}, args)
	if err := s.script.Run(ctx, s.client, keys, args...).Err(); err != nil {
		return fmt.Errorf("add usage of %s: %w", b.Org, err)
	}
	return nil
}

// counters returns pairs of a member and its increment.
func (r *Row) counters() []any {
	list := []any{memberCount, r.Count}
	for kind, counts := range map[string]map[string]int64{kindStatus: r.Statuses, kindV2: r.V2, kindLost: r.Lost} {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			list = append(list, kind+name, counts[name])
		}
	}
	return list
}

// Rows returns the stored rows of an organisation, sorted by the time of their latest call, newest first.
func (s *Store) Rows(ctx context.Context, org string) ([]Row, error) {
	base := s.base(org)
	ids, err := s.client.ZRevRange(ctx, base+":rows", 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read usage of %s: %w", org, err)
	}
	rows := make([]Row, 0, len(ids))
	for chunk := range slices.Chunk(ids, readBatch) {
		found := make([]*redis.MapStringStringCmd, len(chunk))
		if _, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range chunk {
				found[i] = p.HGetAll(ctx, base+":row:"+id)
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("read usage of %s: %w", org, err)
		}
		for i, id := range chunk {
			who, ok := parseID(id)
			members := found[i].Val()
			if ok && len(members) > 0 { // an expired row stays in the index for some time
				rows = append(rows, Row{who, parseSum(members)})
			}
		}
	}
	return rows, nil
}

func parseSum(members map[string]string) Totals {
	s := Totals{Statuses: make(map[string]int64)}
	for member, text := range members {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			continue // not written by this package
		}
		switch kind, name, _ := strings.Cut(member, ":"); {
		case member == memberFirst:
			s.First = time.UnixMilli(n).UTC()
		case member == memberLast:
			s.Last = time.UnixMilli(n).UTC()
		case member == memberCount:
			s.Count = n
		case kind+":" == kindStatus:
			s.Statuses[name] = n
		case kind+":" == kindV2:
			increase(&s.V2, name, n)
		case kind+":" == kindLost:
			increase(&s.Lost, name, n)
		}
	}
	return s
}
