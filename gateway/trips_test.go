package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// tripsConfiguration has two organisations that differ in budgets only.
const tripsConfiguration = `
platform: {base_url: "UPSTREAM"}
redis: {embedded: true}
limits: {timeout: 1m}
policies: {deadline: 1m}
orgs:
  - id: without
    credential: {env: WITHOUT}
    teams: [{id: research}]
    keys:
      - {id: ann, team: research, sha256: SHA256(key_without), roles: [operator], limits: {minute: 100000000, hour: 100000000, day: 100000000}}
  - id: with
    credential: {env: WITH}
    budget: {per_month: 100000000, pods: 100000000}
    teams: [{id: research, budget: {per_hour: 1000000}}]
    keys:
      - {id: bob, team: research, sha256: SHA256(key_with), roles: [operator], budget: {gpus: 100000000}, limits: {minute: 100000000, hour: 100000000, day: 100000000}}
`

const tripsPod = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"},"env":{"A":"1","B":"2"},"ports":["8888/http","22/tcp"]}`

// maker is a canned platform whose creates make a pod each.
func maker() http.HandlerFunc {
	var made atomic.Int64
	lists := map[string]string{
		"/v2/pods": "pods", "/v2/clusters": "clusters", "/v2/serverless": "endpoints", "/v2/network-volumes": "networkVolumes", "/v2/sandboxes": "sandboxes",
		"/v2/templates": "templates", "/v2/registries": "registries",
	}
	return func(w http.ResponseWriter, r *http.Request) {
		list, known := lists[r.URL.Path]
		switch {
		case r.Method == http.MethodPost:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprintf(w, `{"id":"p%d","name":"a","image":"img:1","gpu":{"id":"NVIDIA L4","count":1},"cost":{"perHour":0.43}}`, made.Add(1))
		case known:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{%q:[]}`, list)
		default:
			canned(w, r)
		}
	}
}

// exchanges counts the exchanges with Redis, by subject.
type exchanges struct {
	mu   sync.Mutex
	seen map[string]int
	all  atomic.Int64
}

func (e *exchanges) add(cmds ...redis.Cmder) {
	var what []string
	for _, c := range cmds {
		if s := subject(c); s != "" {
			what = append(what, s)
		}
	}
	if len(what) == 0 {
		return
	}
	e.all.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[strings.Join(what, "+")]++
}

// subject names a command's subject by its first key; "" if it sets a connection
// up or is behind the answer.
func subject(c redis.Cmder) string {
	for _, a := range c.Args() {
		text := textOf(a)
		switch {
		case strings.HasPrefix(text, "tollgate:legacy"), strings.HasPrefix(text, "tollgate:decisions:"):
			return ""
		case strings.HasPrefix(text, "tollgate:rl:"):
			return "limits"
		case strings.HasPrefix(text, "tollgate:intents:"):
			if slices.ContainsFunc(c.Args(), made) {
				return "" // the end of a create, which its response does not wait for
			}
			return "repeat"
		case strings.HasPrefix(text, "tollgate:ledger:"):
			return "ledger"
		}
	}
	switch c.Name() {
	case "hello", "client", "info":
		return ""
	}
	return fmt.Sprint(c.Args())
}

// made reports whether an argument of a script names the pod that an intent has made.
func made(arg any) bool { return strings.HasPrefix(textOf(arg), "mpod/") }

// textOf returns a text among the arguments of a command, "" for others.
func textOf(arg any) string {
	if text, ok := arg.(*string); ok {
		return *text
	}
	text, _ := arg.(string)
	return text
}

// take returns the counts since its last call.
func (e *exchanges) take() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.seen
	e.seen = make(map[string]int)
	return seen
}

// DialHook implements redis.Hook.
func (*exchanges) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (e *exchanges) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		e.add(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (e *exchanges) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		e.add(cmds...)
		return next(ctx, cmds)
	}
}

// tripsHandler is a gateway on a Redis whose exchanges are counted.
func tripsHandler(t testing.TB, addr string) (http.Handler, *exchanges) {
	t.Helper()
	upstream := httptest.NewServer(maker())
	t.Cleanup(upstream.Close)
	cfg := world.Configuration(t, strings.ReplaceAll(tripsConfiguration, "UPSTREAM", upstream.URL), map[string]string{"WITH": "pk-with", "WITHOUT": "pk-without"})
	counted := &exchanges{seen: make(map[string]int)}
	client := world.Redis(t, addr)
	client.AddHook(counted)
	return world.Gateway(t, cfg, gateway.Deps{Redis: client, Logger: slog.New(slog.NewJSONHandler(new(nothing), nil)), Decisions: unchecked(t)}).Handler(), counted
}

// tripsCall makes one call and returns its status and body.
func tripsCall(h http.Handler, method, target, org string) *httptest.ResponseRecorder {
	body := ""
	if method == http.MethodPost {
		body = tripsPod
	}
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RequestURI = target
	r.Header.Set("Authorization", "Bearer key_"+org)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestTripsToRedis: the exchanges that calls wait for, with and without budgets.
func TestTripsToRedis(t *testing.T) {
	h, counted := tripsHandler(t, miniredis.RunT(t).Addr())
	for _, c := range []struct {
		name, method, target string
		status               int
		without, with        map[string]int
	}{
		{"create", "POST", "/v2/pods", 201, map[string]int{"limits": 1, "repeat": 1}, map[string]int{"limits": 1, "ledger": 2}},
		{"read", "GET", "/v2/pods/p1", 200, map[string]int{"limits": 1}, map[string]int{"limits": 1}},
		{"list", "GET", "/v2/pods", 200, map[string]int{"limits": 1}, map[string]int{"limits": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for org, want := range map[string]map[string]int{"without": c.without, "with": c.with} {
				tripsCall(h, c.method, c.target, org) // scripts are loaded and ledgers made with the first
				counted.take()
				if w := tripsCall(h, c.method, c.target, org); w.Code != c.status {
					t.Fatalf("%s budgets: answered %d: %s", org, w.Code, w.Body)
				}
				if diff := cmp.Diff(want, counted.take()); diff != "" {
					t.Errorf("%s budgets, a call waits for other exchanges (-want +got):\n%s", org, diff)
				}
			}
		})
	}
}

// BenchmarkLedger measures the cost of budgets: CPU time of the whole process but Redis, the
// canned platform and the caller included, and exchanges with Redis that calls wait
// for, which those of one moment share.
func BenchmarkLedger(b *testing.B) {
	for _, c := range []struct{ name, method, target string }{{"create", "POST", "/v2/pods"}, {"read", "GET", "/v2/pods/p1"}} {
		for _, org := range []string{"without", "with"} {
			b.Run(c.name+"/"+org, func(b *testing.B) {
				h, counted := tripsHandler(b, redistest.Start(b))
				tripsCall(h, c.method, c.target, org)
				counted.all.Store(0)
				b.SetParallelism(16)
				before := cpu(b)
				b.ResetTimer()
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						if w := tripsCall(h, c.method, c.target, org); w.Code >= 300 {
							b.Errorf("answered %d: %s", w.Code, w.Body)
							return
						}
					}
				})
				b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
				b.ReportMetric(float64(counted.all.Load())/float64(b.N), "trips/op")
			})
		}
	}
}

// cpu is the CPU time of the process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
