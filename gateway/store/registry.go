package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed heartbeat.lua
var heartbeatSource string

// Registry lists members by their latest heartbeats, measured by the Redis clock, with a text for each member. It is safe for concurrent
// use. It does not own its client.
type Registry struct {
	// Client is the Redis client.
	Client Client
	// Key is the key of the registry.
	Key string
	// TTL is the lifetime of an entry after the last heartbeat of its member.
	TTL time.Duration
}

// Heartbeat records a heartbeat of a member with its text and returns the texts of all members by name.
func (r *Registry) Heartbeat(ctx context.Context, member string, text []byte) (map[string]string, error) {
	return r.run(ctx, member, text)
}

// Leave removes a member.
func (r *Registry) Leave(ctx context.Context, member string) error {
	_, err := r.run(ctx, member)
	return err
}

// Members returns the texts of all members by name.
func (r *Registry) Members(ctx context.Context) (map[string]string, error) { return r.run(ctx) }

func (r *Registry) run(ctx context.Context, args ...any) (map[string]string, error) {
	all := append([]any{r.TTL.Milliseconds()}, args...)
	list, err := redis.NewScript(heartbeatSource).Run(ctx, r.Client, []string{r.Key}, all...).StringSlice()
	if err != nil {
		return nil, wrapUnavailable(err)
	}
	members := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		members[list[i]] = list[i+1]
	}
	return members, nil
}
