package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed heartbeat.lua
var heartbeatSource string

// Registry is the list of live members of a group, with a value for each member. A member is live until TTL has passed since its latest
// heartbeat, by the Redis clock. It is safe for concurrent use. It does not own its client.
type Registry struct {
	// Client is the Redis client.
	Client Client
	// Key is the key of the registry.
	Key string
	// TTL is the lifetime of an entry after the last heartbeat of its member.
	TTL time.Duration
}

// Heartbeat records that a member is live and sets its value. It returns the values of all live members by name.
func (r *Registry) Heartbeat(ctx context.Context, member string, text []byte) (map[string]string, error) {
	return r.run(ctx, member, text)
}

// Leave removes a member.
func (r *Registry) Leave(ctx context.Context, member string) error {
	_, err := r.run(ctx, member)
	return err
}

// Members returns the values of all live members by name.
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
