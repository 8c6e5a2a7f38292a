package store

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed setmax.lua
var setMaxSource string

// Hashes stores strings and counters under names and fields. It is safe for concurrent use. It does not own its client.
type Hashes struct {
	// Client is the Redis client.
	Client Client
	// Prefix is the prefix of all keys, followed by a name.
	Prefix string
	// TTL is the lifetime of a hash after its last write, 0 for no expiry.
	TTL time.Duration
}

// Set writes fields of a hash. It is idempotent.
func (h *Hashes) Set(ctx context.Context, name string, fields map[string]any) error {
	_, err := h.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, h.Prefix+name, fields)
		h.expire(ctx, p, name)
		return nil
	})
	return wrapUnavailable(err)
}

// SetMax writes numbers to fields of a hash unless the field has a larger value. It is idempotent.
func (h *Hashes) SetMax(ctx context.Context, name string, fields map[string]int64) error {
	args := append(make([]any, 0, 1+2*len(fields)), h.TTL.Milliseconds())
	for field, n := range fields {
		args = append(args, field, n)
	}
	return wrapUnavailable(redis.NewScript(setMaxSource).Run(ctx, h.Client, []string{h.Prefix + name}, args...).Err())
}

// Field is a field of a hash.
type Field struct{ Hash, Name string }

// Add increases counters by the given numbers.
func (h *Hashes) Add(ctx context.Context, counts map[Field]int64) error {
	_, err := h.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		names := make(map[string]bool)
		for f, n := range counts {
			p.HIncrBy(ctx, h.Prefix+f.Hash, f.Name, n)
			names[f.Hash] = true
		}
		for name := range names {
			h.expire(ctx, p, name)
		}
		return nil
	})
	return wrapUnavailable(err)
}

// expire renews the expiry time of a hash.
func (h *Hashes) expire(ctx context.Context, p redis.Pipeliner, name string) {
	if h.TTL > 0 {
		p.Expire(ctx, h.Prefix+name, h.TTL)
	}
}

// Delete removes a field of a hash.
func (h *Hashes) Delete(ctx context.Context, name, field string) error {
	return wrapUnavailable(h.Client.HDel(ctx, h.Prefix+name, field).Err())
}

// hashesAtOnce is the number of hashes read in one pipeline.
const hashesAtOnce = 100

// Get returns the fields of the named hashes in the given order.
func (h *Hashes) Get(ctx context.Context, names ...string) ([]map[string]string, error) {
	out := make([]map[string]string, 0, len(names))
	for chunk := range slices.Chunk(names, hashesAtOnce) {
		found := make([]*redis.MapStringStringCmd, len(chunk))
		_, err := h.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, name := range chunk {
				found[i] = p.HGetAll(ctx, h.Prefix+name)
			}
			return nil
		})
		if err != nil {
			return nil, wrapUnavailable(err)
		}
		for _, cmd := range found {
			out = append(out, cmd.Val())
		}
	}
	return out, nil
}
