package callers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/store"
)

// KeyStore keeps records in Redis. It is safe for concurrent use. It does not own its
// client.
type KeyStore struct {
	*store.Store[json.RawMessage]

	client redis.Cmdable
	prefix string
}

// KeyRecord is a record as it was found. Its ID is the key's.
type KeyRecord = store.Entry[json.RawMessage]

// NewKeyStore returns a store whose keys begin with prefix. It does not dial.
func NewKeyStore(client redis.Cmdable, prefix string) *KeyStore {
	return &KeyStore{store.New[json.RawMessage](client, prefix), client, prefix}
}

// all is the index of all records of an organisation.
const all = "all"

// Load returns the records of an organisation. They are at least as new as the version.
func (s *KeyStore) Load(ctx context.Context, org string) (version string, records []KeyRecord, err error) {
	versions, err := s.Versions(ctx, []string{org})
	if err != nil {
		return "", nil, err
	}
	records, err = s.Entries(ctx, org, all)
	return versions[org], records, err
}

const (
	// news is the key of a list of the latest announcements of all organisations: "random organisation".
	news = "#news"
	// maxNews is how many are kept: a gateway that has missed more looks at every organisation.
	maxNews = 256
)

// News returns the organisations of which a change was announced after a mark, and the mark of the latest announcement. A change is
// announced before it is made. all says that others may have been announced, too, because the store does not know the mark.
func (s *KeyStore) News(ctx context.Context, since string) (mark string, orgs []string, all bool, err error) {
	last, err := s.client.LRange(ctx, s.prefix+news, -1, -1).Result()
	if err != nil {
		return "", nil, false, store.Unavailable(err)
	}
	mark = strings.Join(last, "")
	if mark == since {
		return mark, nil, false, nil
	}
	list, err := s.client.LRange(ctx, s.prefix+news, 0, -1).Result()
	if err != nil {
		return "", nil, false, store.Unavailable(err)
	}
	i := slices.Index(list, since)
	if i < 0 || len(list) == 0 {
		return mark, nil, true, nil
	}
	for _, line := range list[i+1:] {
		_, org, _ := strings.Cut(line, " ")
		orgs = append(orgs, org)
	}
	return list[len(list)-1], orgs, false, nil
}

// announce tells other gateways that records of an organisation are about to change.
func (s *KeyStore) announce(ctx context.Context, org string) error {
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.RPush(ctx, s.prefix+news, rand.Text()+" "+org)
		p.LTrim(ctx, s.prefix+news, -maxNews, -1)
		return nil
	})
	return store.Unavailable(err)
}

// Swap announces and replaces an entry that was read before; nil deletes it. It returns the entry
// there is afterwards, and whether it is the new one.
func (s *KeyStore) Swap(ctx context.Context, org string, old KeyRecord, next json.RawMessage) (KeyRecord, bool, error) {
	if err := s.announce(ctx, org); err != nil {
		return KeyRecord{}, false, err
	}
	w := store.Write[json.RawMessage]{Version: true, In: []store.Index{{Name: all}}}
	if next != nil {
		w.Record = &next
	}
	return s.Store.Swap(ctx, org, old, w)
}

// used is the key of a hash: id to when the key was last used, Unix seconds.
func (s *KeyStore) used(org string) string { return s.prefix + "{" + org + "}#used" }

// Use notes when keys were last used, by id.
func (s *KeyStore) Use(ctx context.Context, org string, used map[string]time.Time) error {
	values := make([]any, 0, 2*len(used))
	for _, id := range slices.Sorted(maps.Keys(used)) {
		values = append(values, id, used[id].Unix())
	}
	return store.Unavailable(s.client.HSet(ctx, s.used(org), values...).Err())
}

// Used returns when the keys of an organisation were last used, by id.
func (s *KeyStore) Used(ctx context.Context, org string) (map[string]time.Time, error) {
	values, err := s.client.HGetAll(ctx, s.used(org)).Result()
	if err != nil {
		return nil, store.Unavailable(err)
	}
	used := make(map[string]time.Time, len(values))
	for id, text := range values {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s was used at %q", store.ErrUnavailable, id, text)
		}
		used[id] = time.Unix(seconds, 0).UTC()
	}
	return used, nil
}

// Forget drops the known uses of a key that is gone.
func (s *KeyStore) Forget(ctx context.Context, org, id string) error {
	return store.Unavailable(s.client.HDel(ctx, s.used(org), id).Err())
}
