package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writes tells of each write of scripts how many they are, and holds it up until it is
// told to go on.
type writes struct{ arrived, proceed chan int }

func (w writes) hold(cmds ...redis.Cmder) {
	if name := cmds[0].Name(); strings.HasPrefix(name, "eval") || name == "mget" {
		w.arrived <- len(cmds)
		<-w.proceed
	}
}

// DialHook implements redis.Hook.
func (writes) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (w writes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.hold(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (w writes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.hold(cmds...)
		return next(ctx, cmds)
	}
}

// echo returns its argument, or fails.
const echo = `if ARGV[1] == 'fail' then return redis.error_reply('ERR as asked') end return {KEYS[1], ARGV[1]}`

func client(t *testing.T, addr string) redistest.Conn {
	t.Helper()
	return redistest.Once(t, addr)
}

// Scripts that wait while others are under way share a write, and each has its own
// reply or error.
func TestScriptsTravelTogether(t *testing.T) {
	base := client(t, redistest.Start(t))
	if err := base.ScriptLoad(t.Context(), echo).Err(); err != nil {
		t.Fatal(err)
	}
	w := writes{make(chan int), make(chan int)}
	base.AddHook(w)
	c, script := store.NewBatchClient(base), redis.NewScript(echo)
	var calls sync.WaitGroup
	call := func(arg string) {
		calls.Go(func() {
			got, err := script.Run(t.Context(), c, []string{"key-" + arg}, arg).StringSlice()
			if arg == "fail" {
				if err == nil || err.Error() != "ERR as asked" {
					t.Errorf("fail: %v, want the error of the script", err)
				}
				return
			}
			if want := fmt.Sprint([]string{"key-" + arg, arg}); err != nil || fmt.Sprint(got) != want {
				t.Errorf("%s: %v, %v, want %s", arg, got, err, want)
			}
		})
	}
	for i := range 2 { // the flights there are
		call(fmt.Sprint("alone", i))
		if got := <-w.arrived; got != 1 {
			t.Fatalf("a lone script is one of %d", got)
		}
	}
	const more = 9
	for i := range more {
		call(fmt.Sprint("together", i))
	}
	call("fail")
	for c.Queued() != more+1 {
		if t.Context().Err() != nil {
			t.Fatalf("%d scripts wait, want %d", c.Queued(), more+1)
		}
		runtime.Gosched()
	}
	w.proceed <- 1
	if got := <-w.arrived; got != more+1 {
		t.Errorf("%d scripts share a write, want %d", got, more+1)
	}
	w.proceed <- 1
	w.proceed <- 1
	calls.Wait()
}

// A script that the server does not know is sent whole, and one whose caller has left
// is not sent.
func TestScriptsAreLoaded(t *testing.T) {
	c, script := store.NewBatchClient(client(t, miniredis.RunT(t).Addr())), redis.NewScript(echo)
	left, cancel := context.WithCancel(t.Context())
	cancel()
	if err := script.Run(left, c, []string{"k"}, "a").Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("after its caller has left: %v, want %v", err, context.Canceled)
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if err := script.Run(t.Context(), c, []string{"k"}, "a").Err(); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

// In a cluster, scripts of different slots go where their keys are.
func TestScriptsOfACluster(t *testing.T) {
	base := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.Cluster(t, 3), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = base.Close() })
	c, script := store.NewBatchClient(base), redis.NewScript(`return redis.call('INCR', KEYS[1])`)
	var calls sync.WaitGroup
	for i := range 60 {
		calls.Go(func() {
			if err := script.Run(t.Context(), c, []string{fmt.Sprintf("t:{org%d}:n", i%6)}).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	for i := range 6 {
		if got, err := base.Get(t.Context(), fmt.Sprintf("t:{org%d}:n", i)).Int(); got != 10 || err != nil {
			t.Errorf("organisation %d: %d, %v, want 10", i, got, err)
		}
	}
}

// Without a server, scripts fail by their own deadlines.
func TestScriptsFailInTime(t *testing.T) {
	server := miniredis.RunT(t)
	c, script := store.NewBatchClient(client(t, server.Addr())), redis.NewScript(echo)
	server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			if err := script.Run(ctx, c, []string{"k"}, "a").Err(); err == nil {
				t.Error("a script has run without a server")
			}
		})
	}
	calls.Wait()
}

// Reads travel with what waits at the same instant, and each gets its own values.
func TestReadsTravelWithScripts(t *testing.T) {
	base := client(t, redistest.Start(t))
	script := redis.NewScript(echo)
	if err := errors.Join(base.Set(t.Context(), "b", "2", 0).Err(), base.ScriptLoad(t.Context(), echo).Err()); err != nil {
		t.Fatal(err)
	}
	w := writes{make(chan int), make(chan int)}
	base.AddHook(w)
	c := store.NewBatchClient(base)
	var calls sync.WaitGroup
	run := func(arg string) {
		calls.Go(func() {
			if err := script.Run(t.Context(), c, []string{"k"}, arg).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	run("one")
	<-w.arrived
	run("two")
	<-w.arrived
	calls.Go(func() {
		if got, err := c.MGet(t.Context(), "a", "b").Result(); err != nil || fmt.Sprint(got) != "[<nil> 2]" {
			t.Errorf("MGET a b: %v, %v, want nil and 2", got, err)
		}
	})
	run("three")
	for c.Queued() != 2 {
		runtime.Gosched()
	}
	w.proceed <- 1
	if got := <-w.arrived; got != 2 {
		t.Errorf("%d commands share a write, want a read and a script", got)
	}
	w.proceed <- 1
	w.proceed <- 1
	calls.Wait()

	left, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.MGet(left, "a").Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("after its caller has left: %v, want %v", err, context.Canceled)
	}
}

// Pipelines travel with what waits at the same instant, and fail for themselves.
func TestPipelinesTravelWithScripts(t *testing.T) {
	base := client(t, redistest.Start(t))
	script := redis.NewScript(echo)
	if err := errors.Join(base.Set(t.Context(), "text", "x", 0).Err(), base.ScriptLoad(t.Context(), echo).Err()); err != nil {
		t.Fatal(err)
	}
	w := writes{make(chan int), make(chan int)}
	base.AddHook(w)
	c := store.NewBatchClient(base)
	var calls sync.WaitGroup
	run := func() {
		calls.Go(func() {
			if err := script.Run(t.Context(), c, []string{"k"}, "a").Err(); err != nil {
				t.Error(err)
			}
		})
	}
	pipeline := func(keys ...string) ([]redis.Cmder, error) {
		return c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for _, k := range keys {
				p.Incr(t.Context(), k)
			}
			return nil
		})
	}
	for range 2 {
		run()
		<-w.arrived
	}
	run()
	for c.Queued() != 1 {
		runtime.Gosched()
	}
	calls.Go(func() {
		if cmds, err := pipeline("a", "b"); err != nil || len(cmds) != 2 || cmds[1].Err() != nil {
			t.Errorf("a and b: %v, %v, want two commands", cmds, err)
		}
	})
	calls.Go(func() {
		if cmds, err := pipeline("a", "text"); err == nil || len(cmds) != 2 || cmds[0].Err() != nil {
			t.Errorf("a and text: %v, %v, want the error of the second", cmds, err)
		}
	})
	for c.Queued() != 3 {
		runtime.Gosched()
	}
	w.proceed <- 1
	if got := <-w.arrived; got != 5 {
		t.Errorf("%d commands share a write, want a script and two pipelines of two", got)
	}
	w.proceed <- 1
	w.proceed <- 1
	calls.Wait()
	if got, err := base.Get(t.Context(), "a").Result(); got != "2" || err != nil {
		t.Errorf("a = %s, %v, want 2", got, err)
	}

	boom := errors.New("boom")
	if _, err := c.Pipelined(t.Context(), func(redis.Pipeliner) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("a pipeline that is not filled: %v, want %v", err, boom)
	}
	if cmds, err := pipeline(); cmds != nil || err != nil {
		t.Errorf("an empty pipeline: %v, %v", cmds, err)
	}
}
