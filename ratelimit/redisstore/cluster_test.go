package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// reply is the error a client makes of a server's reply.
func reply(t *testing.T, text string) error {
	t.Helper()
	server := miniredis.RunT(t)
	client := redistest.Once(t, server.Addr())
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	server.SetError(text)
	return client.Ping(t.Context()).Err()
}

// TestRefusedWhileASlotMoves: a command that a node refused with TRYAGAIN is sent again for a while, and
// of a pipeline that command alone. Nothing else is sent again.
func TestRefusedWhileASlotMoves(t *testing.T) {
	again, down, other := reply(t, "TRYAGAIN Multiple keys request during rehashing of slot"), reply(t, "CLUSTERDOWN Hash slot not served"), reply(t, "ERR wrong")
	for _, tt := range []struct {
		name    string
		errs    []error
		want    error
		sent    int
		reloads int
	}{
		{"at once", nil, nil, 1, 0},
		{"after three attempts", []error{again, again, again}, nil, 4, 0},
		{"another error", []error{other}, other, 1, 0},
		{"no reply", []error{io.EOF}, io.EOF, 1, 1},
		{"no master", []error{again, down}, down, 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reloads, sent := 0, 0
			hook := redisstore.NewFollower(func(context.Context) { reloads++ }, time.Minute)
			err := hook.ProcessHook(func(_ context.Context, cmd redis.Cmder) error {
				sent++
				if !cmd.NoRetry() {
					t.Error("the client may repeat a script")
				}
				if sent > len(tt.errs) {
					return nil
				}
				return tt.errs[sent-1]
			})(t.Context(), redis.NewCmd(t.Context(), "evalsha", "x", 0))
			if !errors.Is(err, tt.want) || sent != tt.sent || reloads != tt.reloads {
				t.Errorf("%v after %d attempts and %d reloads, want %v after %d and %d", err, sent, reloads, tt.want, tt.sent, tt.reloads)
			}
		})
	}
	t.Run("not for ever", func(t *testing.T) {
		hook := redisstore.NewFollower(func(context.Context) {}, 20*time.Millisecond)
		err := hook.ProcessHook(func(context.Context, redis.Cmder) error { return again })(t.Context(), redis.NewCmd(t.Context(), "get", "x"))
		if !redis.IsTryAgainError(err) {
			t.Errorf("after its patience: %v, want TRYAGAIN", err)
		}
	})
	t.Run("pipeline", func(t *testing.T) {
		var cmds []redis.Cmder
		for i := range 4 {
			cmds = append(cmds, redis.NewCmd(t.Context(), "get", fmt.Sprint(i)))
		}
		var sent []string
		hook := redisstore.NewFollower(func(context.Context) {}, time.Minute)
		err := hook.ProcessPipelineHook(func(_ context.Context, cmds []redis.Cmder) error {
			names := make([]string, len(cmds))
			for i, cmd := range cmds {
				names[i] = fmt.Sprint(cmd.Args()[1])
				cmd.SetErr(nil)
				if len(sent) == 0 && i%2 == 0 || len(sent) == 1 && i == 0 {
					cmd.SetErr(again)
				}
			}
			sent = append(sent, strings.Join(names, " "))
			return cmds[0].Err()
		})(t.Context(), cmds)
		if diff := cmp.Diff([]string{"0 1 2 3", "0 2", "0"}, sent); diff != "" || err != nil {
			t.Errorf("%v; commands sent (-want +got):\n%s", err, diff)
		}
	})
}

// TestAPromotedReplicaIsNoticed: a replica that takes its master's place may know less, and has had
// connections before. Nothing is admitted by it before the pause.
func TestAPromotedReplicaIsNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts six servers")
	}
	c := redistest.ClusterShards(t, 3)
	client, err := redisstore.Open(c.URL(""), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.(*redis.ClusterClient).ForEachShard(t.Context(), func(ctx context.Context, node *redis.Client) error {
		return node.Ping(ctx).Err()
	}); err != nil {
		t.Fatal(err)
	}
	apply := func() error {
		_, err := s.Apply(t.Context(), one(100))
		return err
	}
	for range 3 {
		if err := apply(); err != nil {
			t.Fatal(err)
		}
	}
	c.Promote(c.Of("{org_a}")) // the old master answers nobody until it follows the new one
	if err := apply(); !errors.Is(err, ratelimit.ErrRestarted) {
		t.Errorf("a call to a replica that has just been promoted: %v, want ErrRestarted", err)
	}
}

// movedHook answers the commands of a cluster's node with an error, if one is set.
type movedHook struct{ err *atomic.Pointer[error] }

func (movedHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h movedHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h.err.Load(); err != nil && strings.HasPrefix(cmd.Name(), "eval") {
			cmd.SetErr(*err)
			return *err
		}
		return next(ctx, cmd)
	}
}

func (movedHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestAnUnlistedMasterIsNoticed: after a promotion, the old master names the new one in its replies, while other nodes still list
// the old one.
func TestAnUnlistedMasterIsNoticed(t *testing.T) {
	t.Parallel()
	const before, after = "192.0.2.1:6379", "192.0.2.2:6379"
	data := miniredis.RunT(t).Addr() // of both nodes
	client := redis.NewClusterClient(&redis.ClusterOptions{
		ContextTimeoutEnabled: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: before}}}}, nil
		},
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, data)
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var moved atomic.Pointer[error]
	client.OnNewNode(func(node *redis.Client) {
		if node.Options().Addr == before {
			node.AddHook(movedHook{&moved})
		}
	})
	apply := func() error {
		_, err := s.Apply(t.Context(), one(100))
		return err
	}
	for range 3 {
		if err := apply(); err != nil {
			t.Fatal(err)
		}
	}
	err = reply(t, "MOVED 0 "+after)
	moved.Store(&err)
	for range 2 {
		if err := apply(); !errors.Is(err, ratelimit.ErrRestarted) {
			t.Errorf("a call answered by a new master: %v, want ErrRestarted", err)
		}
	}
	if n := s.Epoch(); n != 1 {
		t.Errorf("%d changes noticed, want 1", n)
	}
}
