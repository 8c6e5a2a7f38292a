package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrUnfit is wrapped in the error of [Store.Check] if a server is reachable but
// cannot keep counts.
var ErrUnfit = errors.New("redis is not fit to keep counts")

// Check asks each server whether it can be trusted with counts: version 6.2 or
// later, and no eviction, which would forget counts one by one without a trace. A
// server that does not tell (the embedded one) passes.
func (s *Store) Check(ctx context.Context) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return fit(ctx, s.client)
	}
	return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		return fit(ctx, node)
	})
}

func fit(ctx context.Context, c redis.Cmdable) error {
	text, err := c.Info(ctx).Result()
	if withholdsInfo(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("redisstore: check: %w", err)
	}
	if err := checkInfo(text); err != nil {
		return fmt.Errorf("redisstore: %w: %w", ErrUnfit, err)
	}
	return nil
}

// withholdsInfo reports whether err is a server's refusal of the INFO command: by an ACL, or
// because the server does not implement it. Any other error, such as a handshake that failed
// with WRONGPASS, says nothing about the server.
func withholdsInfo(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return false
	}
	text := reply.Error()
	return strings.HasPrefix(text, "NOPERM ") && strings.Contains(text, "'info'") ||
		strings.HasPrefix(text, "ERR unknown command") || strings.HasPrefix(text, "section (")
}

// checkInfo judges the reply to INFO.
func checkInfo(info string) error {
	if v := field(info, "redis_version"); v != "" {
		major, rest, _ := strings.Cut(v, ".")
		minor, _, _ := strings.Cut(rest, ".")
		a, errA := strconv.Atoi(major)
		b, errB := strconv.Atoi(minor)
		if errA == nil && errB == nil && (a < 6 || a == 6 && b < 2) {
			return fmt.Errorf("version %s is older than 6.2", v)
		}
	}
	if p := field(info, "maxmemory_policy"); p != "" && p != "noeviction" && field(info, "maxmemory") != "0" {
		return fmt.Errorf("maxmemory-policy is %s, must be noeviction", p)
	}
	return nil
}

// field finds a field in the reply to INFO, empty if it is not there.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
