package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

func one(quota int64) []ratelimit.Op {
	return []ratelimit.Op{{Org: "org_a", Calls: 1, Cost: 1, Scopes: []ratelimit.Scope{
		{Kind: ratelimit.KindKey, ID: "k", Limit: ratelimit.Limit{Day: quota}},
	}}}
}

func TestOptions(t *testing.T) {
	type summary struct {
		Addrs              []string
		DB                 int
		User, Pass, Master string
		Cluster, TLS       bool
		Pool               int
	}
	for _, tt := range []struct {
		url  string
		want summary
		err  string
	}{
		{url: "redis://localhost", want: summary{Addrs: []string{"localhost:6379"}}},
		{url: "redis://[::1]:7000/3", want: summary{Addrs: []string{"[::1]:7000"}, DB: 3}},
		{url: "rediss://u:p%40ss@h:1/0?pool_size=7", want: summary{Addrs: []string{"h:1"}, User: "u", Pass: "p@ss", TLS: true, Pool: 7}},
		{url: "redis+cluster://u:p@a:1,b:2,c", want: summary{Addrs: []string{"a:1", "b:2", "c:6379"}, User: "u", Pass: "p", Cluster: true}},
		{url: "rediss+sentinel://a,b:2/main", want: summary{Addrs: []string{"a:26379", "b:2"}, Master: "main", TLS: true}},
		{url: "redis://a,b", err: "multiple addresses require the scheme redis+cluster or redis+sentinel"},
		{url: "redis+sentinel://a", err: "the path must name the Sentinel master"},
		{url: "redis+cluster://a/1", err: "a cluster does not support databases"},
		{url: "redis://a/x", err: "database must be a number"},
		{url: "redis://a?retries=3", err: `unknown parameter "retries"`},
		{url: "redis://a?pool_size=0", err: "pool_size must be a positive number"},
		{url: "http://a", err: `unknown scheme "http"`},
		{url: "redis://", err: "address is empty"},
		{url: "localhost:6379", err: "unknown scheme"},
		{url: "unix:///run/redis.sock", want: summary{Addrs: []string{"/run/redis.sock"}}},
		{url: "unix://u:p@/run/redis.sock?db=2&pool_size=3", want: summary{Addrs: []string{"/run/redis.sock"}, DB: 2, User: "u", Pass: "p", Pool: 3}},
		{url: "unix://run/redis.sock", err: "without a host, as in unix:///run/redis.sock"},
		{url: "unix:///run/redis.sock?db=x", err: "db must be a number"},
		{url: "redis://a?db=1", err: "requires unix://"},
		{url: "redis://a:99999", err: `"99999" is not a port: must be from 1 to 65535`},
		{url: "redis+cluster://a:1,b:0", err: `"0" is not a port`},
		{url: "redis://my host:6379", err: `"my host" is not a host name or address`},
		{url: "redis://a\t:6379", err: "is not a host name"},
		{url: "redis://u:secret%zz@a", err: "cannot be parsed"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			o, err := redisstore.Options(tt.url)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "secret") {
					t.Errorf("error = %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := summary{o.Addrs, o.DB, o.Username, o.Password, o.MasterName, o.IsClusterMode, o.TLSConfig != nil, o.PoolSize}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if o.MaxRetries != -1 || !o.ContextTimeoutEnabled {
				t.Errorf("MaxRetries = %d, ContextTimeoutEnabled = %v", o.MaxRetries, o.ContextTimeoutEnabled)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	deaf := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = deaf.Close() })
	if _, err := redisstore.New(deaf, redisstore.Config{}); err == nil {
		t.Error("New took a client that ignores deadlines")
	}
	good := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = good.Close() })
	if _, err := redisstore.New(good, redisstore.Config{Prefix: "a{b}"}); err == nil {
		t.Error("New took a prefix with braces")
	}
	for _, recovery := range []time.Duration{1, redisstore.MinRecovery - 1} {
		_, err := redisstore.New(good, redisstore.Config{Recovery: recovery})
		if err == nil || !strings.Contains(err.Error(), "recovery: must be at least 1s (two heartbeats)") {
			t.Errorf("recovery %v: error = %v", recovery, err)
		}
	}
	for _, recovery := range []time.Duration{-1, 0, redisstore.MinRecovery} {
		if _, err := redisstore.New(good, redisstore.Config{Recovery: recovery}); err != nil {
			t.Errorf("recovery %v: %v", recovery, err)
		}
	}
	if _, err := redisstore.New(nil, redisstore.Config{}); err == nil {
		t.Error("New took no client")
	}
}

func TestKeysExpireWithTheirDay(t *testing.T) {
	client := open(t, "redis://"+redistest.Start(t))
	s := newStore(t, client)
	ops := one(10)
	ops[0].Gateway, ops[0].Divisor = "gw", 1
	ops[0].Draws = []ratelimit.Draw{{Need: [3]int64{1, 1, 1}}}
	now, err := s.Apply(t.Context(), ops)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 4 {
		t.Fatalf("keys = %q, %v; want a scope, an index, a table of leases and the positions", keys, err)
	}
	want := time.UnixMilli(ops[0].After[0].End(2)).Add(ratelimit.Retention)
	for _, key := range keys {
		if key == "tollgate:rl:positions" { // that of a whole node
			if at := client.ExpireTime(t.Context(), key).Val(); at != time.Duration(want.Add(24*time.Hour).Unix())*time.Second {
				t.Errorf("positions expire at %v, want a day later than %v", at, want)
			}
			continue
		}
		if !strings.HasPrefix(key, "tollgate:rl:{org_a}") {
			t.Errorf("key %s has no hash tag", key)
		}
		got, err := client.ExpireTime(t.Context(), key).Result()
		if err != nil || !time.Unix(int64(got/time.Second), 0).Equal(want) {
			t.Errorf("%s expires at %v, %v; want %v", key, time.Unix(int64(got/time.Second), 0), err, want)
		}
	}
	if now == 0 {
		t.Error("Apply told no time")
	}
}

func TestScriptFlush(t *testing.T) {
	client := open(t, "redis://"+redistest.Start(t))
	s := newStore(t, client)
	for i := range int64(3) {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		ops := one(10)
		if _, err := s.Apply(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
		if got := ops[0].After[0].Count[2]; got != i+1 {
			t.Errorf("call %d after SCRIPT FLUSH was counted as %d", i+1, got)
		}
	}
}

// lossy passes bytes to a server. Once told to, it loses the replies to scripts,
// and to scripts only: a client that repeats one on a new connection must be able
// to make that. Once the reply is there, the reader is told that its time is up.
type lossy struct {
	net.Conn
	lose       *atomic.Bool
	deaf, late atomic.Bool
}

func (c *lossy) Write(p []byte) (int, error) {
	if c.lose.Load() && bytes.Contains(p, []byte("evalsha")) {
		c.deaf.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *lossy) Read(p []byte) (int, error) {
	if !c.late.Load() {
		n, err := c.Conn.Read(p)
		if err != nil || !c.deaf.Load() {
			return n, err
		}
		c.late.Store(true)
	}
	return 0, &net.OpError{Op: "read", Net: "tcp", Addr: c.RemoteAddr(), Err: os.ErrDeadlineExceeded}
}

// TestLostReplyIsNotRepeated uses a client whose own retries are on: the store
// must not depend on its settings.
func TestLostReplyIsNotRepeated(t *testing.T) {
	addr := redistest.Start(t)
	var lose atomic.Bool
	client := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: 3, ContextTimeoutEnabled: true, ReadTimeout: time.Minute,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &lossy{Conn: c, lose: &lose}, err
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client)
	if _, err := s.Apply(t.Context(), one(100)); err != nil {
		t.Fatal(err)
	}
	lose.Store(true)
	if _, err := s.Apply(t.Context(), one(100)); err == nil {
		t.Fatal("a call without an answer reported none missing")
	}
	lose.Store(false)
	ops := one(100)
	if _, err := newStore(t, open(t, "redis://"+addr)).Apply(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	if got := ops[0].After[0].Count[2]; got != 3 {
		t.Errorf("counted %d calls, want 3: one before, the lost one, one after", got)
	}
}

func TestDeadline(t *testing.T) {
	server := redistest.Run(t)
	s := newStore(t, open(t, "redis://"+server.Addr()))
	if _, err := s.Apply(t.Context(), one(100)); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	defer server.Thaw()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := s.Apply(ctx, one(100))
	// The client alone would wait for a minute.
	if took := time.Since(began); err == nil || took > 20*time.Second {
		t.Errorf("Apply on a frozen server: %v after %v; want an error after 30ms", err, took)
	}
}

func TestBrokenValues(t *testing.T) {
	client := open(t, "redis://"+redistest.Start(t))
	s := newStore(t, client)
	for _, value := range []string{"", "x", "{}", "[]", `["a"]`, "[0,1]"} {
		if err := client.Set(t.Context(), "tollgate:rl:{org_a}:key:k", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		ops := one(5)
		if _, err := s.Apply(t.Context(), ops); err == nil {
			t.Errorf("value %q was taken for a count: admitted %d", value, ops[0].Admitted)
		}
	}
}

func TestFullMemory(t *testing.T) {
	client := open(t, "redis://"+redistest.Start(t))
	s := newStore(t, client)
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), one(5)); err == nil {
		t.Error("a call was admitted that could not be written down")
	}
}

func TestCheck(t *testing.T) {
	client := open(t, "redis://"+redistest.Start(t))
	s := newStore(t, client)
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("a server as it comes: %v", err)
	}
	for _, setting := range [][2]string{{"maxmemory", "100mb"}, {"maxmemory-policy", "allkeys-lru"}} {
		if err := client.ConfigSet(t.Context(), setting[0], setting[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Check(t.Context()); !errors.Is(err, redisstore.ErrUnfit) {
		t.Errorf("a server that evicts keys: %v, want ErrUnfit", err)
	}
	embedded := newStore(t, open(t, "redis://"+miniredis.RunT(t).Addr()))
	if err := embedded.Check(t.Context()); err != nil {
		t.Errorf("the embedded server: %v", err)
	}
	nobody := newStore(t, open(t, "redis://127.0.0.1:1"))
	if err := nobody.Check(t.Context()); err == nil || errors.Is(err, redisstore.ErrUnfit) {
		t.Errorf("nobody there: %v, want an error that is not ErrUnfit", err)
	}
}

// TestRights runs everything as a user with no more rights than the documentation
// asks for, and shows that these are not more than that.
func TestRights(t *testing.T) {
	addr := redistest.Start(t)
	grant(t, open(t, "redis://"+addr), "limiter", "secret")
	client := open(t, "redis://limiter:secret@"+addr)
	useAll(t, newStore(t, client))
	for _, command := range [][]any{
		{"GET", "elsewhere"},
		{"SET", "elsewhere", "1"},
		{"EVAL", "return redis.call('GET', KEYS[1])", 1, "elsewhere"},
		{"EVAL", "return redis.call('DEL', KEYS[1])", 1, "tollgate:rl:resets"},
		{"SCRIPT", "FLUSH"},
		{"DEL", "tollgate:rl:{org_a}:key:k"},
		{"KEYS", "*"},
		{"FLUSHALL"},
		{"CONFIG", "GET", "*"},
		{"PUBLISH", "c", "m"},
	} {
		err := client.Do(t.Context(), command...).Err()
		if err == nil || !strings.Contains(err.Error(), "permission") && !strings.Contains(err.Error(), "can't run this command") {
			t.Errorf("%v: %v, want no permission", command, err)
		}
	}
}

// TestRefusedCommandChargesNothing takes one right after the other from a user:
// whichever command the server refuses, no count has changed.
func TestRefusedCommandChargesNothing(t *testing.T) {
	addr := redistest.Start(t)
	admin := open(t, "redis://"+addr)
	whole := newStore(t, admin)
	for _, command := range []string{"set", "sadd", "hset", "expireat"} {
		t.Run(command, func(t *testing.T) {
			if err := admin.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			grant(t, admin, "without_"+command, "secret")
			if err := admin.Do(t.Context(), "ACL", "SETUSER", "without_"+command, "-"+command).Err(); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, open(t, "redis://without_"+command+":secret@"+addr))
			draw := one(5)
			draw[0].Gateway, draw[0].Divisor = "gw", 1
			draw[0].Draws = []ratelimit.Draw{{Need: [3]int64{1, 1, 1}, Want: [3]int64{2, 2, 2}}}
			draw[0].Debtor, draw[0].Debts = "a", []ratelimit.Debt{{Number: 1, Blind: true, Units: [3]int64{1, 1, 1}}}
			if _, err := s.Apply(t.Context(), draw); err == nil {
				t.Fatal("a call passed that could not be written down")
			}
			state := ratelimit.State{Index: [3]int64{1 << 40, 1 << 40, 1 << 40}}
			err := s.Adjust(t.Context(), "org_a", []ratelimit.Adjustment{{
				Ref: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k"}, State: state, Delta: [3]int64{1, 1, 1}, Gateway: "gw",
			}})
			if err == nil {
				t.Error("a correction passed that could not be written down")
			}
			snap, err := whole.Snapshot(t.Context(), "org_a")
			if err != nil {
				t.Fatal(err)
			}
			for _, scope := range snap.Scopes {
				t.Errorf("%s has %v", scope.Ref, scope.State.Count)
			}
		})
	}
}

// grant makes a user as the documentation says.
func grant(t *testing.T, admin redistest.Conn, user, password string) {
	t.Helper()
	rule := []any{"ACL", "SETUSER", user, "on", ">" + password}
	for word := range strings.FieldsSeq(rightsNeeded) {
		rule = append(rule, word)
	}
	if err := admin.Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
}

// useAll does all a store can do.
func useAll(t *testing.T, s *redisstore.Store) {
	t.Helper()
	ops := one(5)
	ops[0].Gateway, ops[0].Divisor = "gw", 1
	ops[0].Draws = []ratelimit.Draw{{Need: [3]int64{1, 1, 1}}}
	ops[0].Debtor, ops[0].Debts = "a", []ratelimit.Debt{{Number: 1, Blind: true}}
	_, err := s.Apply(t.Context(), ops)
	steps := map[string]error{"Apply": err, "Check": s.Check(t.Context())}
	if err == nil {
		steps["Adjust"] = s.Adjust(t.Context(), "org_a", []ratelimit.Adjustment{{
			Ref: ratelimit.Ref{Kind: ratelimit.KindKey, ID: "k"}, State: ops[0].After[0], Delta: [3]int64{1, 1, 1}, Gateway: "gw",
		}})
	}
	_, steps["Leases"] = s.Leases(t.Context(), "org_a", 0, []ratelimit.Ref{{Kind: ratelimit.KindKey, ID: "k"}})
	_, steps["Show"] = s.Snapshot(t.Context(), "org_a")
	_, steps["Beat"] = s.Heartbeat(t.Context(), "gw", time.Minute)
	steps["Reset"] = s.Reset(t.Context(), "org_a", ratelimit.Ref{})
	for name, err := range steps {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rightsNeeded is the rule in docs/ratelimits.md.
const rightsNeeded = `resetchannels resetkeys -@all ~tollgate:rl:*
    +evalsha +eval +get +set +sadd +expireat +hset +hget +smembers +mget +hgetall +hmget +time +info +incr
    +zadd +zrem +zremrangebyscore +zrange +pexpire +hdel`

func TestRightsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/ratelimits.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := strings.Join(strings.Fields(string(text)), " ")
	if rule := strings.Join(strings.Fields(rightsNeeded), " "); !strings.Contains(documented, rule) {
		t.Errorf("docs/ratelimits.md does not have the rule %s", rule)
	}
}

func TestUnreachable(t *testing.T) {
	s := newStore(t, open(t, "redis://127.0.0.1:1"))
	if _, err := s.Apply(t.Context(), one(5)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("Apply without a server: %v", err)
	}
}
