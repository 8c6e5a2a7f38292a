package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/world"
)

// listsOf are lists of pods in the three dialects.
func listsOf() map[string]func() *http.Request {
	return map[string]func() *http.Request{
		"v2": func() *http.Request { return httptest.NewRequest(http.MethodGet, "/v2/pods", http.NoBody) },
		"v1": func() *http.Request { return httptest.NewRequest(http.MethodGet, "/v1/pods", http.NoBody) },
		"graphql": func() *http.Request {
			r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(`{"query":"{ myself { pods { id name imageName desiredStatus costPerHr gpuCount ports env } } }"}`))
			r.Header.Set("Content-Type", "application/json")
			return r
		},
	}
}

// lister is a canned platform with so many pods.
func lister(n int) http.HandlerFunc {
	var pods strings.Builder
	for i := range n {
		if i > 0 {
			pods.WriteByte(',')
		}
		_, _ = fmt.Fprintf(&pods, `{"id":"pod%d","name":"train-%d","status":"RUNNING","actions":["stop","restart","terminate"],"image":"img:1","args":"","cmd":[],`+
			`"entrypoint":[],"disk":80,"env":{"HF_HOME":"/data/hf","BATCH":"32"},"ports":["8888/http","22/tcp"],"registry":null,"mounts":{},`+
			`"gpu":{"id":"NVIDIA L4","count":1,"vcpuCount":12,"memory":50},"cloud":"SECURE","dataCenterId":"EU-NL-1","cudaVersion":"12.4",`+
			`"ssh":{"proxy":null,"direct":null},"template":null,"cost":{"perHour":0.43},"locked":false,"globalNetworking":{"enabled":false},`+
			`"runtime":null,"createdAt":"2026-08-21T22:15:09.469Z","startedAt":null}`, i, i)
	}
	list := fmt.Appendf(nil, `{"pods":[%s]}`, &pods) // one for all answers: what they hold is not the gateway's
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/pods" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(list)
			return
		}
		canned(w, r)
	}
}

// commands counts commands to Redis, those in pipelines one by one.
type commands struct{ n atomic.Int64 }

// DialHook implements redis.Hook.
func (*commands) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// counter is an answer of which the status and the pods are kept alone.
type counter struct {
	header http.Header
	status int
	pods   int
	first  []byte
}

// Header implements http.ResponseWriter.
func (c *counter) Header() http.Header { return c.header }

// WriteHeader implements http.ResponseWriter.
func (c *counter) WriteHeader(status int) { c.status = status }

// Flush implements http.Flusher.
func (*counter) Flush() {}

// Write implements http.ResponseWriter. Pieces of an answer may divide a name or two.
func (c *counter) Write(p []byte) (int, error) {
	if c.first == nil {
		c.first = bytes.Clone(p[:min(len(p), 300)])
	}
	c.pods += bytes.Count(p, []byte(`"name":`))
	return len(p), nil
}

// listing is a gateway in front of so many pods.
func listing(tb testing.TB, n int) (list func(dialect string), asked *commands) {
	tb.Helper()
	h, asked := listed(tb, n)
	requests := listsOf()
	return func(dialect string) {
		r := requests[dialect]()
		r.RequestURI = r.URL.Path
		r.Header.Set("Authorization", "Bearer key_without")
		w := &counter{header: make(http.Header)}
		h.ServeHTTP(w, r)
		want := n
		if dialect == "v2" {
			want = min(n, 1_000) // the most items of a page
		}
		if w.status != http.StatusOK || w.pods < want-want/100 || w.pods > want {
			tb.Errorf("%s: %d with %d pods, want %d: %s", dialect, w.status, w.pods, want, w.first)
		}
	}, asked
}

// listed is the handler of a gateway in front of so many pods.
func listed(tb testing.TB, n int) (h http.Handler, asked *commands) {
	tb.Helper()
	upstream := httptest.NewServer(lister(n))
	tb.Cleanup(upstream.Close)
	cfg := world.Configuration(tb, strings.ReplaceAll(tripsConfiguration, "UPSTREAM", upstream.URL), map[string]string{"WITH": "pk-with", "WITHOUT": "pk-without"})
	client := world.Redis(tb, redistest.Start(tb)) // in a process of its own, whose allocations are not counted
	asked = new(commands)
	client.AddHook(asked)
	return world.Gateway(tb, cfg, gateway.Deps{Redis: client, Logger: slog.New(slog.DiscardHandler), Decisions: unchecked(tb)}).Handler(), asked
}

// Long lists and documents have a content coding, for callers that accept one; answers to other methods have none.
func TestLongAnswersAreCompressed(t *testing.T) {
	h, _ := listed(t, 200)
	for _, tc := range []struct {
		method, path, body, accept, coding string
	}{
		{"GET", "/v2/pods", "", "gzip", "gzip"},
		{"GET", "/v1/pods", "", "gzip", "gzip"},
		{"GET", "/v2/pods", "", "", ""},
		{"GET", "/v2/pods/pod1", "", "gzip", ""},
		{"GET", "/v2/openapi.json", "", "gzip", "gzip"},
		{"POST", "/graphql", `{"query":"{ myself { pods { id name imageName desiredStatus costPerHr gpuCount ports env } } }"}`, "gzip", ""},
	} {
		r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body))
		r.RequestURI = tc.path
		r.Header.Set("Authorization", "Bearer key_without")
		if tc.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if tc.accept != "" {
			r.Header.Set("Accept-Encoding", tc.accept)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		t.Logf("%s %s, %q accepted: %d bytes", tc.method, tc.path, tc.accept, w.Body.Len())
		if got := w.Header().Get("Content-Encoding"); w.Code != http.StatusOK || got != tc.coding {
			t.Errorf("%s %s: %d with coding %q, want %q", tc.method, tc.path, w.Code, got, tc.coding)
		}
	}
}

// TestListsCost compares the cost of a list with committed figures, which do not move with load: allocations for each pod, and commands to
// Redis of a list of 1,000, whose pods were seen before. Lower a figure together with its cost.
func TestListsCost(t *testing.T) {
	const few, many = 100, 1_000
	small, _ := listing(t, few)
	large, asked := listing(t, many)
	for dialect, most := range map[string]struct{ allocations, commands int64 }{
		"v2": {1, 8}, "v1": {3, 12}, "graphql": {5, 8}, // commands, with those behind the answer of the list before
	} {
		t.Run(dialect, func(t *testing.T) {
			small(dialect)
			large(dialect)
			each := (testing.AllocsPerRun(3, func() { large(dialect) }) - testing.AllocsPerRun(3, func() { small(dialect) })) / (many - few)
			before := asked.n.Load()
			large(dialect)
			n := asked.n.Load() - before
			t.Logf("%.1f allocations a pod, %d commands", each, n)
			if int64(each+0.5) > most.allocations || n > most.commands {
				t.Errorf("%.1f allocations a pod, %d commands, want at most %d and %d", each, n, most.allocations, most.commands)
			}
		})
	}
}

// BenchmarkLists lists pods in three dialects.
func BenchmarkLists(b *testing.B) {
	for _, n := range []int{20, 2_000, 20_000} {
		list, asked := listing(b, n)
		for dialect := range listsOf() {
			b.Run(fmt.Sprintf("%s/%d", dialect, n), func(b *testing.B) {
				list(dialect)
				asked.n.Store(0)
				b.ReportAllocs()
				for b.Loop() {
					list(dialect)
				}
				b.ReportMetric(float64(asked.n.Load())/float64(b.N), "commands/op")
			})
		}
	}
}

// BenchmarkListsAtOnce has 16 callers list 20,000 pods at once, and tells the most memory that
// the process had meanwhile, the canned platform included.
func BenchmarkListsAtOnce(b *testing.B) {
	list, _ := listing(b, 20_000)
	for dialect := range listsOf() {
		b.Run(dialect, func(b *testing.B) {
			debug.FreeOSMemory()
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // VmHWM begins anew (proc(5))
				b.Skip(err)
			}
			for b.Loop() {
				var callers sync.WaitGroup
				for range 16 {
					callers.Go(func() { list(dialect) })
				}
				callers.Wait()
			}
			text, err := os.ReadFile("/proc/self/status")
			if err != nil {
				b.Fatal(err)
			}
			_, most, _ := strings.Cut(string(text), "VmHWM:")
			kb, err := strconv.ParseFloat(strings.Fields(most)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(kb/1e3, "most-MB")
		})
	}
}
