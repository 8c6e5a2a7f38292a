package soak

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/built"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

var length = flag.Duration("for", 20*time.Second, "how long to run")

// number is how many samples are taken in a run.
const number = 30

// token is the admin token.
const token = "token-of-the-soak-test"

// configuration is the gateway's file. It remembers little, so that its memories are full after
// the warm-up.
const configuration = `
listen: %s
admin: {listen: %s, token: {env: ADMIN_TOKEN}}
platform: {base_url: %q, run_url: %q}
redis: {url: {env: REDIS_URL}}
log: {level: error}
overload: {working: 10000}
limits: {timeout: 10s}
policies: {deadline: 10s}
decisions: {keep: 50}
spend: {reconcile: 10s}
orgs:
  - id: acme
    credential: {env: ACME}
    budget: {pods: 1000, per_hour: 10000}
    policies:
      - {policy: gpu_allow_list, params: {gpus: ["NVIDIA L4", "NVIDIA GeForce RTX 4090"]}}
      - {policy: price_ceiling, params: {max_usd_per_hour: 40}}
    teams: [{id: research, budget: {pods: 500}}]
    keys:
      - {id: ann, team: research, sha256: SHA256(key_anna), roles: [admin]}
      - {id: bob, team: research, sha256: SHA256(key_bobby), roles: [operator], limits: {minute: 100000, hour: 10000000}}
      - {id: eve, sha256: SHA256(key_evelyn), roles: [operator]}
`

// gateway is the program under load, and the servers around it.
type gateway struct {
	process     *exec.Cmd
	data, admin string // addresses
	path, text  string // of the configuration
	store       redistest.Conn
	// pod and endpoint are there all the time.
	pod, endpoint string
}

func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("puts a gateway under load")
	}
	p := platform.RunT(t, platform.AllowUnknown(), platform.WithAccounts(platform.Account{ID: "acme", Key: platform.DefaultKey, Exempt: true, WorkerQuota: 1000}))
	g := start(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), *length)
	defer cancel()
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		g.load(ctx, t)
	}()
	var samples []sample
	tick := time.NewTicker(*length / number)
	defer tick.Stop()
	for began := time.Now(); ctx.Err() == nil; {
		samples = append(samples, sample{time.Since(began), g.measure(t)})
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	<-loaded
	if t.Failed() {
		return
	}
	if len(samples) < number/3 {
		t.Fatalf("%d samples, want %d", len(samples), number)
	}
	for _, b := range bounds() {
		t.Logf("%s:%s", b.quantity, course(samples, b.quantity))
	}
	for _, fault := range check(samples) {
		t.Error(fault)
	}
	g.compare(t, p)
}

// start builds the program and runs it over an emulator and a Redis of its own.
func start(t *testing.T, p *platform.Instance) *gateway {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "tollgate")
	if err := built.Tollgate(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	addr := redistest.Start(t)
	g := &gateway{path: filepath.Join(dir, "tollgate.yaml"), store: redistest.Client(t, addr)}
	var ports [2]string
	for i := range ports {
		port, err := redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	g.data, g.admin = "http://"+ports[0], "http://"+ports[1]
	g.text = world.Digests(fmt.Sprintf(configuration, ports[0], ports[1], p.URL, p.RunURL))
	if err := os.WriteFile(g.path, []byte(g.text), 0o600); err != nil {
		t.Fatal(err)
	}
	g.process = exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "-c", g.path)
	g.process.Env = append(os.Environ(), "ACME="+platform.DefaultKey, "ADMIN_TOKEN="+token, "REDIS_URL=redis://"+addr)
	var log world.Buffer
	g.process.Stderr = &log
	if err := g.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.process.Process.Signal(syscall.SIGTERM)
		if err := g.process.Wait(); err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the gateway wrote:\n%s", log.String())
		}
	})
	world.Until(t, "the gateway is ready", func() bool {
		_, err := g.operate(t.Context(), http.MethodGet, "/readyz")
		return err == nil
	})
	c := &caller{gateway: g}
	for into, of := range map[*string]step{
		&g.pod:      {201, "POST", "/v2/pods", `{"name":"stays","image":"img:1","gpu":{"id":"NVIDIA L4"}}`},
		&g.endpoint: {201, "POST", "/v2/serverless", `{"name":"stays","image":"img:1","type":"QUEUE","gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4}}`},
	} {
		doc, err := c.ask(t.Context(), of.want, of.method, of.target, "key_anna", of.body)
		if err != nil {
			t.Fatal(err)
		}
		*into, _ = doc["id"].(string)
	}
	return g
}

// operate asks the admin listener.
func (g *gateway) operate(ctx context.Context, method, target string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.admin+target, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, target, res.Status, text)
	}
	return text, err
}

// measure returns a sample of the gateway, behind a collection of garbage.
func (g *gateway) measure(t *testing.T) map[string]float64 {
	t.Helper()
	if _, err := g.operate(t.Context(), http.MethodGet, "/debug/pprof/heap?gc=1"); err != nil {
		t.Fatal(err)
	}
	page, err := g.operate(t.Context(), http.MethodGet, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{"lasting keys": g.lasting(t)}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "#") {
			values["series"]++
		}
	}
	for quantity, metric := range map[string]string{
		"heap": "go_memstats_heap_alloc_bytes", "goroutines": "go_goroutines", "descriptors": "process_open_fds",
	} {
		found := regexp.MustCompile(`(?m)^` + metric + ` (\S+)$`).FindSubmatch(page)
		if found == nil {
			t.Fatalf("no metric %s", metric)
		}
		if values[quantity], err = strconv.ParseFloat(string(found[1]), 64); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// lasting counts the keys in Redis that do not expire: all others go by themselves.
func (g *gateway) lasting(t *testing.T) (n float64) {
	t.Helper()
	for all := g.store.Scan(t.Context(), 0, "", 1000).Iterator(); all.Next(t.Context()); {
		left, err := g.store.PTTL(t.Context(), all.Val()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if left == -1 {
			n++
		}
	}
	return n
}

// compare holds the ledger against what there is at the platform.
func (g *gateway) compare(t *testing.T, p *platform.Instance) {
	t.Helper()
	text, err := g.operate(t.Context(), http.MethodGet, "/admin/spend?org=acme")
	if err != nil {
		t.Fatal(err)
	}
	var ledger struct {
		Complete  bool
		Resources []struct{ ID string }
		Holds     []json.RawMessage
	}
	if err := json.Unmarshal(text, &ledger); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range ledger.Resources {
		got = append(got, r.ID)
	}
	want := []string{g.pod, g.endpoint}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || !ledger.Complete || len(ledger.Holds) > 0 {
		t.Errorf("complete %t, %d holds, resources (-platform +ledger):\n%s", ledger.Complete, len(ledger.Holds), diff)
	}
	page, err := g.operate(t.Context(), http.MethodGet, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, drift := range regexp.MustCompile(`(?m)^tollgate_ledger_drift_total\{.*\} [1-9].*$`).FindAll(page, -1) {
		t.Errorf("the reconciler had to mend the ledger: %s", drift)
	}
	var pods struct{ Pods []struct{ ID string } }
	raw := world.Ask(t, strings.TrimPrefix(p.URL, "http://"), world.Request(http.MethodGet, "/v2/pods", platform.DefaultKey, ""))
	if err := json.Unmarshal([]byte(raw.Body), &pods); err != nil {
		t.Fatal(err)
	}
	if len(pods.Pods) != 1 || pods.Pods[0].ID != g.pod {
		t.Errorf("the platform has the pods %v, want %s alone", pods.Pods, g.pod)
	}
}
