package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/config/fault"
	"github.com/tollgate-dev/tollgate/ratelimit"
)

// DefaultPrefix is the default of Config.Prefix.
const DefaultPrefix = "tollgate:rl:"

// Config configures a Store. The zero Config is usable.
type Config struct {
	// Prefix is the prefix of every key, by default DefaultPrefix. Several installations can share a Redis with different prefixes. A prefix
	// must not contain braces.
	Prefix string `yaml:"prefix,omitempty"`
	// Recovery is the maximum length of the pause after the server restarted or was replaced. During the pause, gateways restore their counts
	// and no calls are admitted. The default is [ratelimit.DefaultRecovery], the minimum MinRecovery. If Recovery is negative, there is no pause: a server
	// that has lost its data may then admit up to another full quota.
	Recovery time.Duration `yaml:"recovery,omitempty"`
	// Now returns the current time, by default time.Now. It is used to measure the pause.
	Now func() time.Time `yaml:"-"`
}

// MinRecovery is the minimum of Config.Recovery: a gateway learns about a replaced server with one heartbeat, and has restored its counts
// before the next heartbeat.
const MinRecovery = 2 * ratelimit.HeartbeatInterval

// Validate checks c and joins the errors it finds, each with the name of the field.
func (c Config) Validate() error {
	var errs fault.Found
	if c.Prefix != "" {
		if err := ratelimit.CheckID(c.Prefix); err != nil {
			errs = append(errs, fault.Errorf("prefix", "%w", err))
		}
	}
	errs.If(c.Recovery > 0 && c.Recovery < MinRecovery, "recovery",
		"must be at least %v (two heartbeats), got %v", MinRecovery, c.Recovery)
	return errors.Join(errs...)
}

// Store is a [ratelimit.Store] in Redis. It is safe for concurrent use. It does not close its client.
type Store struct {
	client  Client
	once    noRetryScripter
	watch   *serverWatch
	prefix  string
	cluster bool
	apply   *redis.Script
	adjust  *redis.Script
	reset   *redis.Script
	scratch sync.Pool
}

var _ ratelimit.Store = (*Store)(nil)

// New returns a Store that uses client, which should come from [Open]. New does not connect. It adds a hook to client that detects new
// connections. It returns an error if client does not obey deadlines.
func New(client Client, config Config) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: the client is required")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	if !obeysDeadlines(client) {
		return nil, errors.New("redisstore: the client must set ContextTimeoutEnabled to honour deadlines")
	}
	_, cluster := client.(*redis.ClusterClient)
	s := &Store{
		client:  client,
		once:    noRetryScripter{client},
		watch:   newWatch(client, config),
		prefix:  config.Prefix,
		cluster: cluster,
		apply:   redis.NewScript(applySource),
		adjust:  redis.NewScript(adjustSource),
		reset:   redis.NewScript(resetSource),
		scratch: sync.Pool{New: func() any { return &encoder{seen: make(map[string]int)} }},
	}
	s.prefix = cmp.Or(s.prefix, DefaultPrefix)
	return s, nil
}

// Group implements [ratelimit.Store]. On a cluster, each organisation is a group, because one script call cannot use several slots.
func (s *Store) Group(org string) string {
	if s.cluster {
		return org
	}
	return ""
}

// Apply implements [ratelimit.Store] with one script call.
func (s *Store) Apply(ctx context.Context, ops []ratelimit.Op) (int64, error) {
	ctx, cancel := extendDeadline(ctx)
	defer cancel()
	e := s.scratch.Get().(*encoder)
	defer s.scratch.Put(e)
	if err := s.run(ctx, e, s.Group(ops[0].Org), ops); err != nil {
		return 0, wrap("apply", err)
	}
	now, err := e.decode(ops)
	return now, wrap("apply", err)
}

// Adjust implements [ratelimit.Store].
func (s *Store) Adjust(ctx context.Context, org string, adjustments []ratelimit.Adjustment) error {
	ctx, cancel := extendDeadline(ctx)
	defer cancel()
	keys, args := encodeAdjust(s.prefix, org, adjustments)
	err := s.adjust.Run(ctx, s.once, keys, args...).Err()
	if _, answered := errors.AsType[redis.Error](err); answered {
		return fmt.Errorf("redisstore: adjust: %w: %w", ratelimit.ErrNotServing, err)
	}
	return wrap("adjust", err)
}

// Reset implements [ratelimit.Store].
func (s *Store) Reset(ctx context.Context, org string, ref ratelimit.Ref) error {
	keys := []string{scopeKey(s.prefix, org, ref)}
	if ref == (ratelimit.Ref{}) {
		var err error
		if keys, err = s.client.SMembers(ctx, indexKey(s.prefix, org)).Result(); err != nil {
			return fmt.Errorf("redisstore: reset: %w", err)
		}
	}
	if len(keys) > 0 {
		if err := s.reset.Run(ctx, s.once, keys).Err(); err != nil {
			return fmt.Errorf("redisstore: reset: %w", err)
		}
	}
	return wrap("reset", s.client.Incr(ctx, s.prefix+"resets").Err())
}

// Heartbeat implements [ratelimit.Store].
func (s *Store) Heartbeat(ctx context.Context, gateway string, ttl time.Duration) (ratelimit.HeartbeatResult, error) {
	ctx, cancel := extendDeadline(ctx)
	defer cancel()
	if s.watch.unheard.Swap(false) {
		return ratelimit.HeartbeatResult{}, wrap("heartbeat", ratelimit.ErrRestarted)
	}
	epoch := s.watch.epoch.Load()
	e := s.scratch.Get().(*encoder)
	defer s.scratch.Put(e)
	if err := s.run(ctx, e, "", nil); err != nil {
		return ratelimit.HeartbeatResult{}, wrap("heartbeat", err)
	}
	now := e.numbers[0]
	key, roll := s.prefix+"gateways", s.prefix+s.watch.roll()
	var live, restored *redis.StringSliceCmd
	var resets *redis.StringCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, key, redis.Z{Score: float64(now), Member: gateway})
		p.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(now-ttl.Milliseconds(), 10))
		p.PExpire(ctx, key, ttl)
		live = p.ZRange(ctx, key, 0, -1)
		restored = p.SMembers(ctx, roll)
		resets = p.Get(ctx, s.prefix+"resets")
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return ratelimit.HeartbeatResult{}, wrap("heartbeat", err)
	}
	if err := s.watch.check(ctx, epoch); err != nil {
		return ratelimit.HeartbeatResult{}, wrap("heartbeat", err)
	}
	p := ratelimit.HeartbeatResult{Live: len(live.Val())}
	p.GatewayLost = s.watch.heard(epoch, live.Val(), restored.Val(), ttl)
	if err := resets.Err(); err == nil {
		if p.Resets, err = resets.Int64(); err != nil {
			return ratelimit.HeartbeatResult{}, wrap("heartbeat", err)
		}
	}
	return p, nil
}

// restoredTTL is the TTL of the set of gateways that have restored their counts.
const restoredTTL = time.Hour

// Restore implements [ratelimit.Store].
func (s *Store) Restore(ctx context.Context, gateway string, timeout time.Duration, adjust func(context.Context) error) error {
	epoch := s.watch.epoch.Load()
	if err := adjust(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// The set belongs to the server that received the adjustments; otherwise the check fails.
	key := s.prefix + s.watch.roll()
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, key, gateway)
		p.PExpire(ctx, key, restoredTTL)
		return nil
	})
	if err != nil {
		return wrap("restore", err)
	}
	return wrap("restore", s.watch.check(ctx, epoch))
}

// Leases implements [ratelimit.Store].
func (s *Store) Leases(ctx context.Context, org string, day int64, scopes []ratelimit.Ref) ([][]ratelimit.LeaseState, error) {
	ctx, cancel := extendDeadline(ctx)
	defer cancel()
	leases := make([][]ratelimit.LeaseState, len(scopes))
	gateways := s.watch.alive()
	if len(gateways) == 0 {
		return leases, nil
	}
	fields := make([]string, 0, len(scopes)*len(gateways))
	for _, ref := range scopes {
		for _, gateway := range gateways {
			fields = append(fields, scopeKey(s.prefix, org, ref)+"|"+gateway)
		}
	}
	values, err := s.client.HMGet(ctx, leasesKey(s.prefix, org, day), fields...).Result()
	if err != nil {
		return nil, wrap("leases", err)
	}
	for i, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		lease, err := decodeLease(gateways[i%len(gateways)], text)
		if err != nil {
			return nil, wrap("leases", err)
		}
		if lease.Index[2] == day {
			leases[i/len(gateways)] = append(leases[i/len(gateways)], lease)
		}
	}
	return leases, nil
}

// Alive returns the names of the gateways with a recent heartbeat, sorted.
func (s *Store) Alive() []string { return s.watch.alive() }

// Snapshot implements [ratelimit.Store]. It reads keys one after another, so the counts of different scopes may come from slightly
// different times.
func (s *Store) Snapshot(ctx context.Context, org string) (ratelimit.Snapshot, error) {
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return ratelimit.Snapshot{}, fmt.Errorf("redisstore: snapshot: %w", err)
	}
	keys, err := s.client.SMembers(ctx, indexKey(s.prefix, org)).Result()
	if err != nil || len(keys) == 0 {
		return ratelimit.Snapshot{Now: now.UnixMilli()}, wrap("show", err)
	}
	values, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return ratelimit.Snapshot{}, wrap("show", err)
	}
	snap := ratelimit.Snapshot{Now: now.UnixMilli()}
	today := ratelimit.State{}
	today.Advance(snap.Now)
	var leases [2]map[string]string
	for day := range leases {
		if leases[day], err = s.client.HGetAll(ctx, leasesKey(s.prefix, org, int64(day))).Result(); err != nil {
			return ratelimit.Snapshot{}, wrap("show", err)
		}
	}
	stem := scopeKey(s.prefix, org, ratelimit.Ref{})
	stem = stem[:len(stem)-1]
	for i, key := range keys {
		text, ok := values[i].(string)
		if !ok {
			continue // expired since the index was read
		}
		scope, err := decodeScope(strings.TrimPrefix(key, stem), text)
		if err != nil {
			return ratelimit.Snapshot{}, fmt.Errorf("redisstore: snapshot: %s: %w", key, err)
		}
		if scope.State.Index[2] < today.Index[2] {
			continue // left over from yesterday
		}
		scope.State.Advance(snap.Now)
		if scope.Leases, err = decodeLeases(key, leases, scope.State.Index[2]); err != nil {
			return ratelimit.Snapshot{}, fmt.Errorf("redisstore: snapshot: %s: %w", key, err)
		}
		snap.Scopes = append(snap.Scopes, scope)
	}
	slices.SortFunc(snap.Scopes, func(a, b ratelimit.ScopeState) int {
		return strings.Compare(a.Ref.String(), b.Ref.String())
	})
	return snap, nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redisstore: %s: %w", what, err)
}

// noRetryScripter runs scripts with commands that are never repeated by the client's retries. The redirects of a cluster client repeat a
// command only if the node reports that nothing was executed (MOVED, ASK).
type noRetryScripter struct{ Client }

var _ redis.Scripter = noRetryScripter{}

func (o noRetryScripter) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return o.run(ctx, "evalsha", sha, keys, args)
}

func (o noRetryScripter) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return o.run(ctx, "eval", script, keys, args)
}

func (o noRetryScripter) run(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, name, script, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	// The error is stored in cmd, where callers read it.
	_ = o.Process(ctx, noRetryCmder{cmd})
	return cmd
}
