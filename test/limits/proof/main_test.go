package proof

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

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
	// Scenes wait more than they compute: four fit at once. Ten, with a race detector, had
	// one lose more answers than it could account for. The command line goes before.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// order is a command to a gateway process.
type order struct {
	URL      string
	Mode     ratelimit.Mode
	Recovery time.Duration
	// Forgets is set if the server loses its data.
	Forgets bool
	// Timeout bounds an exchange with the store; short, so that faults matter,
	// unless a scene says otherwise.
	Timeout time.Duration
	// Callers is the number of callers, Every the time between calls of each.
	Callers int
	Every   time.Duration
	// Quotas are the quotas of the day, by scope: org and keys.
	Quotas map[string]int64
}

// record is one admission as a gateway process reports it, or what an exchange
// may have charged without an answer.
type record struct {
	Key       string           `json:",omitempty"`
	Sent, Got int64            `json:",omitempty"`
	Lost      map[string]int64 `json:",omitempty"`
}

// reporter writes records, each at once and whole.
type reporter struct {
	mu  sync.Mutex
	out io.Writer
}

func (r *reporter) write(what record) {
	line, _ := json.Marshal(what) // numbers and words
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(line, '\n')) // whoever reads it may have gone
}

// serve is a gateway process: it calls its limiter until its input ends, and
// reports every admission at once, so that killing it loses none.
func serve(text string, in io.Reader, out io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	report := &reporter{out: out}
	limiter, client, err := o.limiter(report)
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
	for i := range o.Callers {
		callers.Go(func() { o.call(limiter, i, stop, report) })
	}
	callers.Wait()
	cancel()
	background.Wait()
	return nil
}

func (o *order) limiter(report *reporter) (*ratelimit.Limiter, redisstore.Client, error) {
	client, err := redisstore.Open(o.URL, time.Minute)
	if err != nil {
		return nil, nil, err
	}
	client.AddHook(sentHook{})
	store, err := redisstore.New(client, redisstore.Config{Recovery: o.Recovery})
	if err != nil {
		return nil, nil, err
	}
	config := ratelimit.DefaultConfig()
	config.Mode, config.Timeout = o.Mode, cmp.Or(o.Timeout, 250*time.Millisecond)
	limiter, err := ratelimit.New(config, ratelimit.Deps{Store: witness{
		store, func(lost map[string]int64) { report.write(record{Lost: lost}) }, o.Forgets,
	}})
	return limiter, client, err
}

// call makes calls until stop is closed. Callers alternate between the keys.
func (o *order) call(l *ratelimit.Limiter, n int, stop <-chan struct{}, report *reporter) {
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
		report.write(record{Key: key, Sent: sent, Got: time.Now().UnixNano()})
	}
}

// gateway is a running gateway process.
type gateway struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	read  chan struct{}

	mu sync.Mutex
	// admitted and lost are units by scope.
	admitted, lost map[string]int64
}

// start runs a gateway process.
func (o *order) start(t *testing.T) *gateway {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, cmd: exec.Command(os.Args[0]), read: make(chan struct{}), admitted: make(map[string]int64), lost: make(map[string]int64)}
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
		if r.Key != "" {
			g.admitted[r.Key]++
			g.admitted["org"]++
		}
		for scope, units := range r.Lost {
			g.lost[scope] += units
		}
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

// sums adds up what gateways admitted and lost, by scope.
func sums(gateways []*gateway) (admitted, lost map[string]int64) {
	admitted, lost = make(map[string]int64), make(map[string]int64)
	for _, g := range gateways {
		g.mu.Lock()
		for scope, units := range g.admitted {
			admitted[scope] += units
		}
		for scope, units := range g.lost {
			lost[scope] += units
		}
		g.mu.Unlock()
	}
	return admitted, lost
}
