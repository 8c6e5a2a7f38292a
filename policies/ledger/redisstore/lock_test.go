package redisstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// counted counts commands.
type counted struct {
	redis.Hook

	n atomic.Int64
}

// ProcessHook implements redis.Hook.
func (c *counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

// DialHook implements redis.Hook.
func (*counted) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (*counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Calls of one gateway that wait for a rebuild do not poll Redis.
func TestWaitingPassesDoNotPoll(t *testing.T) {
	const passes = 30
	client, sent := redistest.Once(t, redistest.Start(t)), new(counted)
	client.AddHook(sent)
	s := redisstore.New(client, "tg:spend:", nil)
	var all sync.WaitGroup
	for range passes {
		all.Go(func() {
			unlock, err := s.Lock(t.Context(), "acme")
			if err != nil {
				t.Error(err)
				return
			}
			unlock()
		})
	}
	all.Wait()
	// Each pass obtains the lock and releases it. A few commands open connections and load the scripts.
	if n := sent.n.Load(); n > 3*passes {
		t.Errorf("%d passes sent %d commands, want about %d", passes, n, 2*passes)
	}
}
