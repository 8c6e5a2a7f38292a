package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// earlier is the version that this one replaces, and can be replaced by.
const earlier = "b2828fc"

// earlierBinary returns the path of tollgate as an earlier commit has it, built into
// .tools when it is not there yet.
func earlierBinary(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(root + ".tools/versions")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tollgate-"+earlier)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	has := exec.CommandContext(t.Context(), "git", "cat-file", "-e", earlier+"^{commit}")
	has.Dir = root
	if err := has.Run(); err != nil {
		t.Skipf("the history has no commit %s: two versions are not tried over one Redis", earlier)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	// The program is moved to its name when it is whole.
	line := `git archive "$0" | tar --extract --directory "$1" && cd "$1" && go build -o "$2.new" ./cmd/tollgate && mv "$2.new" "$2"`
	build := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", line, earlier, t.TempDir(), path)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", earlier, err, out)
	}
	return path
}

const (
	mostGPUs    = 6
	mostPerHour = 6.5
	mostCalls   = 300
)

// pair is two gateways of any versions over one Redis, before one platform.
type pair struct {
	upstream *platform.Instance
	addrs    [2]string
	paths    [2]string // of their configurations
	url      string    // of Redis
	running  [2]*process
	read     atomic.Int64 // calls that the quota let pass
	refused  atomic.Int64 // creates that the budgets refused

	mu   sync.Mutex // guards pods
	pods []string
}

// newPair writes the two configurations. They are of one organisation, whose budget
// and quota both hold, and differ in their listeners.
func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{
		upstream: platform.RunT(t, platform.WithAccounts(platform.Account{ID: "acme", Key: platform.DefaultKey, Exempt: true})),
		url:      "redis://" + redistest.Run(t).Addr(),
	}
	for i := range p.addrs {
		port, err := redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		p.addrs[i] = fmt.Sprintf("127.0.0.1:%d", port)
		text := fmt.Sprintf(`listen: %s
admin: {listen: "127.0.0.1:0"}
platform: {base_url: "%s"}
redis: {url: {env: REDIS_URL}}
timeouts: {drain: 10s}
orgs:
  - id: acme
    credential: {env: ACME_KEY}
    budget: {gpus: %d, per_hour: %v}
    keys:
      - {id: ann, roles: [operator], sha256: %s}
      - {id: reader, limits: {day: %d}, sha256: %s}
`, p.addrs[i], p.upstream.URL, mostGPUs, mostPerHour, identity.DigestOf(callerKey), mostCalls, identity.DigestOf(readerKey))
		p.paths[i] = filepath.Join(t.TempDir(), "tollgate.yaml")
		if err := os.WriteFile(p.paths[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// readerKey is the key whose quota both gateways count.
const readerKey = "some_other_key_of_ours"

// run replaces a gateway by one of a program.
func (p *pair) run(t *testing.T, i int, program string) {
	t.Helper()
	if p.running[i] != nil {
		p.running[i].stop(t)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "-c", p.paths[i])
	cmd.Env = append(os.Environ(), "ACME_KEY="+platform.DefaultKey, "REDIS_URL="+p.url)
	p.running[i] = start(t, cmd)
	p.running[i].wait(t, `"msg":"serving"`)
}

// load has both gateways asked by several callers at once: each creates as many as the
// budgets allow, deletes when they do not, through either gateway, and reads.
func (p *pair) load(t *testing.T) {
	t.Helper()
	var callers sync.WaitGroup
	for caller := range 6 {
		callers.Go(func() {
			for n := range 12 {
				at := p.addrs[(caller+n)%2]
				gpu := []string{"NVIDIA L4", "NVIDIA H100 80GB HBM3"}[(caller+n/2)%2]
				p.create(t, at, gpu)
				p.within(t)
				if world.Ask(t, at, world.Request(http.MethodGet, "/v2/pods", readerKey, "")).Status == http.StatusOK {
					p.read.Add(1)
				}
			}
		})
	}
	callers.Wait()
}

// create creates a pod, or deletes one when the budgets refuse.
func (p *pair) create(t *testing.T, addr, gpu string) {
	answer := world.Ask(t, addr, world.Request(http.MethodPost, "/v2/pods", callerKey, fmt.Sprintf(`{"name":"a","image":"img:1","gpu":{"id":%q}}`, gpu)))
	switch answer.Status {
	case http.StatusCreated:
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(answer.Body), &made); err != nil {
			t.Errorf("%v: %s", err, answer.Body)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pods = append(p.pods, made.ID)
	case http.StatusPaymentRequired:
		p.refused.Add(1)
		p.mu.Lock()
		id := ""
		if len(p.pods) > 0 {
			id, p.pods = p.pods[0], p.pods[1:]
		}
		p.mu.Unlock()
		if id == "" {
			return
		}
		if a := world.Ask(t, addr, world.Request(http.MethodDelete, "/v2/pods/"+id, callerKey, "")); a.Status != http.StatusNoContent {
			t.Errorf("delete: status %d, want 204: %s", a.Status, a.Body)
		}
	default:
		t.Errorf("create: status %d, want 201 or 402: %s", answer.Status, answer.Body)
	}
}

// within holds the platform against the budgets.
func (p *pair) within(t *testing.T) {
	_, perHour, err := p.upstream.Balance("acme")
	if err != nil {
		t.Error(err)
	}
	if perHour > mostPerHour {
		t.Errorf("the organisation spends %v USD per hour, its budget is %v", perHour, mostPerHour)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pods) > mostGPUs {
		t.Errorf("the organisation has %d GPUs, its budget is %d", len(p.pods), mostGPUs)
	}
}

// Two versions share a Redis through an upgrade and back, each with its own
// configuration file: quotas and budgets hold over all of it.
func TestUpgradeAndRollback(t *testing.T) {
	t.Parallel()
	tool(t, "redis-server")
	before, now := earlierBinary(t), binary.Path(t)
	p := newPair(t)
	opts, err := redis.ParseURL(p.url)
	if err != nil {
		t.Fatal(err)
	}
	store := redistest.Dial(t, *opts)
	day := func() int {
		at, err := store.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return at.UTC().YearDay()
	}
	began, today := time.Now(), day()
	p.run(t, 0, before)
	p.run(t, 1, before)
	p.load(t)
	for _, step := range []struct {
		name    string
		gateway int
		program string
	}{{"one is new", 0, now}, {"both are new", 1, now}, {"one went back", 0, before}, {"both went back", 1, before}} {
		refused := p.refused.Load()
		p.run(t, step.gateway, step.program)
		p.load(t)
		if p.refused.Load() == refused {
			t.Errorf("%s: the budgets have refused nothing", step.name)
		}
	}
	t.Logf("%d reads of a quota of %d, %d creates refused, in %v", p.read.Load(), mostCalls, p.refused.Load(), time.Since(began))
	if got := p.read.Load(); day() == today && got != mostCalls {
		t.Errorf("%d calls were let through, want the %d of the quota", got, mostCalls)
	}
}
