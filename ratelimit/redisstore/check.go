package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrUnfit is wrapped in the error of [Store.Check] if a server is reachable but unsuitable for storing counts.
var ErrUnfit = errors.New("counts cannot be stored in this Redis")

// Check verifies that each server is suitable for storing counts: its version is 6.2 or later, and it does not evict keys, which would lose
// counts without a trace. A server that does not report these facts, such as the embedded server, passes the check.
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

// withholdsInfo reports whether err means that a server refused the INFO command, because of an ACL or because it does not implement
// the command. Other errors, such as a handshake that failed with WRONGPASS, say nothing about the server.
func withholdsInfo(err error) bool {
	reply, ok := errors.AsType[redis.Error](err)
	if !ok {
		return false
	}
	text := reply.Error()
	return strings.HasPrefix(text, "NOPERM ") && strings.Contains(text, "'info'") ||
		strings.HasPrefix(text, "ERR unknown command") || strings.HasPrefix(text, "section (")
}

// checkInfo checks the reply to INFO.
func checkInfo(info string) error {
	if v := field(info, "redis_version"); v != "" {
		major, rest, _ := strings.Cut(v, ".")
		minor, _, _ := strings.Cut(rest, ".")
		a, errA := strconv.Atoi(major)
		b, errB := strconv.Atoi(minor)
		if errA == nil && errB == nil && (a < 6 || a == 6 && b < 2) {
			return fmt.Errorf("version must be at least 6.2, got %s", v)
		}
	}
	if p := field(info, "maxmemory_policy"); p != "" && p != "noeviction" && field(info, "maxmemory") != "0" {
		return fmt.Errorf("maxmemory-policy must be noeviction, got %s", p)
	}
	return nil
}

// field returns a field of the reply to INFO, or "" if it is missing.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
