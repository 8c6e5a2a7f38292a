package redisstore

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// BehindSentinel reports whether s takes its client for one that asks Sentinels.
func (s *Store) BehindSentinel() bool { return s.watch.sentinel }

// Dial makes a connection as the client would, over a dialler that answers conn.
func (s *Store) Dial(ctx context.Context, conn net.Conn) error {
	_, err := s.watch.DialHook(func(context.Context, string, string) (net.Conn, error) { return conn, nil })(ctx, "tcp", "")
	return err
}

// Epoch returns how often s has noticed another server.
func (s *Store) Epoch() int64 { return s.watch.epoch.Load() }

// NewFollower returns the hook of a cluster's client.
func NewFollower(reload func(context.Context), patience time.Duration) redis.Hook {
	return &follower{reload, patience}
}
