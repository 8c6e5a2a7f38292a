package proof

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/ratelimit/redisstore"
)

// orders is the environment variable that turns this test binary into a gateway.
const orders = "TOLLGATE_PROOF_ORDERS"

func TestMain(m *testing.M) {
	if text := os.Getenv(orders); text != "" {
		if err := serve(text, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// The proxy leaves a goroutine behind for a connection that breaks while a
	// fault is being taken away.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
}

// order is what a gateway process is told to do.
type order struct {
	URL      string
	Mode     ratelimit.Mode
	Recovery time.Duration
	// Callers is the number of callers, Every the time between calls of each.
	Callers int
	Every   time.Duration
	// Quotas are the quotas of the day, by scope: org and keys.
	Quotas map[string]int64
}

// record is one admission as a gateway process reports it.
type record struct {
	Key       string
	Sent, Got int64
}

// serve is a gateway process: it calls its limiter until its input ends, and
// reports every admission at once, so that killing it loses none.
func serve(text string, in io.Reader, out io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	limiter, client, err := o.limiter()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var background, callers sync.WaitGroup
	background.Go(func() { _ = limiter.Run(ctx) })
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(stop)
	}()
	var mu sync.Mutex
	for i := range o.Callers {
		callers.Go(func() { o.call(limiter, i, stop, &mu, out) })
	}
	callers.Wait()
	cancel()
	background.Wait()
	return nil
}

func (o *order) limiter() (*ratelimit.Limiter, redis.UniversalClient, error) {
	options, err := redisstore.Options(o.URL)
	if err != nil {
		return nil, nil, err
	}
	client := redis.NewUniversalClient(options)
	store, err := redisstore.New(client, redisstore.Config{Recovery: o.Recovery})
	if err != nil {
		return nil, nil, err
	}
	config := ratelimit.DefaultConfig()
	config.Mode, config.Timeout = o.Mode, 250*time.Millisecond
	limiter, err := ratelimit.New(config, ratelimit.Deps{Store: store})
	return limiter, client, err
}

// call makes calls until stop is closed. Callers alternate between the keys.
func (o *order) call(l *ratelimit.Limiter, n int, stop <-chan struct{}, mu *sync.Mutex, out io.Writer) {
	pace := time.NewTicker(o.Every)
	defer pace.Stop()
	for i := n; ; i++ {
		select {
		case <-stop:
			return
		case <-pace.C:
		}
		key := fmt.Sprintf("k%d", 1+i%2)
		take := ratelimit.Take{Org: "org_a", Class: ratelimit.ClassWrite, Scopes: []ratelimit.Scope{
			{Kind: ratelimit.KindKey, ID: key, Limit: ratelimit.Limit{Day: o.Quotas[key]}},
			{Kind: ratelimit.KindOrg, ID: "org", Limit: ratelimit.Limit{Day: o.Quotas["org"]}},
		}}
		sent := time.Now().UnixNano()
		d, err := l.Take(context.Background(), take)
		if err != nil || !d.Allowed {
			continue
		}
		line, _ := json.Marshal(record{key, sent, time.Now().UnixNano()})
		mu.Lock()
		_, _ = out.Write(append(line, '\n'))
		mu.Unlock()
	}
}

// gateway is a running gateway process.
type gateway struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	read  chan struct{}

	mu      sync.Mutex
	records []record
}

// start runs a gateway process.
func (o *order) start(t *testing.T) *gateway {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, cmd: exec.Command(os.Args[0]), read: make(chan struct{})}
	g.cmd.Env = append(os.Environ(), orders+"="+string(text))
	var complaints strings.Builder
	g.cmd.Stderr = &complaints
	in, err := g.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.stdin = in
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go g.collect(out)
	t.Cleanup(func() {
		if g.cmd.ProcessState == nil {
			g.kill()
		}
	})
	return g
}

func (g *gateway) collect(out io.Reader) {
	defer close(g.read)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			g.t.Errorf("gateway said %q: %v", lines.Text(), err)
			continue
		}
		g.mu.Lock()
		g.records = append(g.records, r)
		g.mu.Unlock()
	}
}

// stop lets the gateway end in peace.
func (g *gateway) stop() {
	g.t.Helper()
	_ = g.stdin.Close()
	<-g.read
	if err := g.cmd.Wait(); err != nil {
		g.t.Errorf("gateway: %v\n%s", err, g.cmd.Stderr)
	}
}

// kill ends the gateway as kill -9 does.
func (g *gateway) kill() {
	g.t.Helper()
	if err := g.cmd.Process.Kill(); err != nil {
		g.t.Errorf("kill: %v", err)
	}
	<-g.read
	_ = g.cmd.Wait() // it was killed
}

// admitted adds up what gateways admitted, by scope.
func admitted(gateways []*gateway) map[string]int64 {
	sum := make(map[string]int64)
	for _, g := range gateways {
		g.mu.Lock()
		for _, r := range g.records {
			sum[r.Key]++
			sum["org"]++
		}
		g.mu.Unlock()
	}
	return sum
}
