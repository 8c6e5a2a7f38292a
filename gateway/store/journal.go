package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Journal is the lists of one sort. It is safe for concurrent use. It does not own its client.
type Journal struct {
	// Client is the store.
	Client redis.Cmdable
	// Prefix begins its keys.
	Prefix string
	// Most is the number of entries of a list that are kept, and For how long a list is kept behind its last entry.
	Most int64
	For  time.Duration
}

// key is that of a list.
func (j *Journal) key(name string) string { return j.Prefix + "{" + name + "}" }

// Add adds an entry to a list.
func (j *Journal) Add(ctx context.Context, name string, entry []byte) error {
	_, err := j.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.RPush(ctx, j.key(name), entry)
		p.LTrim(ctx, j.key(name), -j.Most, -1)
		p.Expire(ctx, j.key(name), j.For)
		return nil
	})
	return Unavailable(err)
}

// List returns the entries of a list, the newest first.
func (j *Journal) List(ctx context.Context, name string) ([]string, error) {
	return j.Latest(ctx, name, j.Most)
}

// Latest returns the newest n entries of a list, the newest first.
func (j *Journal) Latest(ctx context.Context, name string, n int64) ([]string, error) {
	list, err := j.Client.LRange(ctx, j.key(name), -n, -1).Result()
	slices.Reverse(list)
	return list, Unavailable(err)
}

// part is the key of a text beside a list.
func (j *Journal) part(name, part string) string { return j.key(name) + "#" + part }

// Put keeps a text beside a list, for as long as the list.
func (j *Journal) Put(ctx context.Context, name, part string, text []byte) error {
	return Unavailable(j.Client.Set(ctx, j.part(name, part), text, j.For).Err())
}

// Get returns a text beside a list, nil if it is not kept.
func (j *Journal) Get(ctx context.Context, name, part string) ([]byte, error) {
	text, err := j.Client.Get(ctx, j.part(name, part)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return text, Unavailable(err)
}

// Drop drops a text beside a list.
func (j *Journal) Drop(ctx context.Context, name, part string) error {
	return Unavailable(j.Client.Del(ctx, j.part(name, part)).Err())
}

// Claim reports whether the caller is the first to claim a part of a list since it was dropped. Claims end with the list.
func (j *Journal) Claim(ctx context.Context, name, part string) (bool, error) {
	err := j.Client.SetArgs(ctx, j.part(name, part), "claimed", redis.SetArgs{Mode: "NX", TTL: j.For}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, Unavailable(err)
}
