package gateway_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/test/world"
)

// panics is a hook that panics instead of sending commands of some names, as often as it may.
type panics struct {
	names []string
	left  *atomic.Int64
}

// DialHook implements redis.Hook.
func (panics) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (p panics) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(p.names, cmd.Name()) && p.left.Add(-1) >= 0 {
			panic("boom")
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (panics) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// panicking returns a gateway whose tasks panic, and its log.
func panicking(t *testing.T, p panics) (*gateway.Gateway, *world.Buffer) {
	t.Helper()
	client, log := world.Redis(t, miniredis.RunT(t).Addr()), new(world.Buffer)
	client.AddHook(p)
	cfg := world.Configuration(t, `
platform: {base_url: "http://127.0.0.1:1"}
redis: {embedded: true}
orgs: [{id: acme, credential: {env: ACME}, budget: {gpus: 1}}]
`, map[string]string{"ACME": "credential"})
	return world.Gateway(t, cfg, gateway.Deps{
		Redis: client, Logger: slog.New(slog.NewJSONHandler(log, nil)), Data: world.Listen(t), Admin: world.Listen(t),
	}), log
}

// A task that panics is logged with its stack, counted and restarted; the gateway serves meanwhile.
func TestATaskThatPanics(t *testing.T) {
	t.Parallel()
	left := new(atomic.Int64)
	left.Store(1)
	g, log := panicking(t, panics{[]string{"hgetall"}, left})
	world.Run(t, g)
	world.Until(t, "the panic is in the log", func() bool { return strings.Contains(log.String(), `"msg":"task panicked, restarting it"`) })
	found := regexp.MustCompile(`"task":"([a-z ]+)","error":"panic: boom","pause":"1s","exception.stacktrace":".*ProcessHook`).FindStringSubmatch(log.String())
	if found == nil {
		t.Fatalf("the log lacks the task, its panic or its stack: %s", log)
	}
	page := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.AdminHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w
	}
	if body := page("/metrics").Body.String(); !strings.Contains(body, `tollgate_task_panics_total{task="`+found[1]+`"} 1`) {
		t.Error("the metrics lack the panic")
	}
	world.Until(t, "the gateway is ready", func() bool { return page("/readyz").Code == http.StatusOK }) // the task may have panicked before it served
}

// Five panics in a minute end the gateway with an error that says so.
func TestTasksThatKeepPanicking(t *testing.T) {
	t.Parallel()
	left := new(atomic.Int64)
	left.Store(1 << 30)
	g, _ := panicking(t, panics{[]string{"evalsha", "hgetall", "time"}, left}) // of the limiter, too
	err := g.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "tasks panicked 5 times within 1m0s") || !strings.Contains(err.Error(), "boom") {
		t.Errorf("%v, want the end after five panics", err)
	}
}

// The end of a gateway: which tasks live until which phase, and the order in which those that are drained end. TestTasksEndByPhases in
// gateway/tasks has the rule.
func TestTasksEndInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := world.Configuration(t, `
platform: {base_url: "http://127.0.0.1:1"}
redis: {embedded: true}
audit: {file: {path: "`+dir+`/audit.log"}, otlp: {endpoint: "http://127.0.0.1:1"}}
decisions: {file: {path: "`+dir+`/decisions.log"}}
orgs: [{id: acme, credential: {env: ACME}}]
`, map[string]string{"ACME": "credential"})
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr()), Logger: slog.New(slog.DiscardHandler)})
	got := make([][]string, tasks.Ended+1)
	for _, task := range g.Tasks(t.Context(), world.Listen(t)) {
		got[task.Until] = append(got[task.Until], task.Name)
	}
	for _, phase := range []tasks.Phase{tasks.Stopping, tasks.Closed} { // which end together
		slices.Sort(got[phase])
	}
	if diff := cmp.Diff([][]string{
		{"catalog", "exceptions", "ledger warnings", "platform's description", "policies", "reconciler", "reports"},
		{"door", "envoy door", "envoy fleet"},
		{
			"background work", "outbox", "ledger images", "journal of owners", "limiter", "store check", "intents", "issuer keys", "keys", "fleet",
			"admin listener",
		},
		{"audit shipping", "audit receiver", "decision log", "decision counts", "legacy notes"},
	}, got); diff != "" {
		t.Errorf("tasks by the phase that ends them (-want +got):\n%s", diff)
	}
}
