package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// The keys the emulator is given.
const (
	fullKey    = "contract-full"
	deniedKey  = "contract-denied"
	limitedKey = "contract-limited"
	poorKey    = "contract-poor"
)

// client calls one platform and holds its answers against its description.
type client struct {
	http        *http.Client
	url, runURL string
	key, denied string
	gpu         string
	destructive bool
	patience    time.Duration      // how long a state is waited for
	interval    time.Duration      // between two looks
	emulator    *platform.Instance // nil against a real platform
	api         *description
	seen        map[string]map[int]bool // statuses by operation
}

// newClient reads the environment, and starts an emulator when it names no
// platform.
func newClient(t *testing.T) *client {
	t.Helper()
	env := os.Getenv // here, and nowhere else in these tests
	c := &client{
		http:        &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Minute},
		url:         strings.TrimSuffix(env("TOLLGATE_CONTRACT_URL"), "/"),
		runURL:      strings.TrimSuffix(env("TOLLGATE_CONTRACT_RUN_URL"), "/"),
		key:         env("TOLLGATE_CONTRACT_KEY"),
		denied:      env("TOLLGATE_CONTRACT_DENIED_KEY"),
		gpu:         env("TOLLGATE_CONTRACT_GPU"),
		destructive: env("TOLLGATE_CONTRACT_DESTRUCTIVE") == "1",
		patience:    15 * time.Minute,
		interval:    5 * time.Second,
		seen:        map[string]map[int]bool{},
	}
	if c.gpu == "" {
		c.gpu = "NVIDIA RTX A4000"
	}
	if c.url == "" {
		c.useEmulator(t)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	raw := c.raw(t, http.MethodGet, c.url+"/v2/openapi.json", "", nil)
	if raw.status != http.StatusOK {
		t.Fatalf("GET /v2/openapi.json: got %d", raw.status)
	}
	c.api = describe(t, raw.body)
	c.note("getOpenAPI", raw.status)
	return c
}

// useEmulator starts an emulator whose clock runs twenty times as fast.
func (c *client) useEmulator(t *testing.T) {
	t.Helper()
	document, err := os.ReadFile("../../gateway/schema/openapi.json")
	if err != nil {
		t.Fatalf("the description the emulator serves: %v", err)
	}
	c.emulator = platform.RunT(t, platform.AllowUnknown(), platform.WithOptions(platform.Options{
		OpenAPI: document,
		Timing:  platform.Timing{Build: 2 * time.Second},
		Clock:   platform.NewClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), 20),
		Accounts: []platform.Account{
			{ID: "full", Key: fullKey, Balance: 100_000, Keys: []platform.Key{{Secret: deniedKey, Access: platform.NoAccess}}},
			{ID: "limited", Key: limitedKey, Quota: platform.Quota{Minute: 1, Hour: 1, Day: 1}},
			{ID: "poor", Key: poorKey, Balance: 0.1},
		},
	}))
	c.url, c.runURL, c.key, c.denied = c.emulator.URL, c.emulator.RunURL, fullKey, deniedKey
	c.destructive, c.patience, c.interval = true, 2*time.Minute, 5*time.Millisecond
}

// with returns the client calling with another key.
func (c *client) with(key string) *client {
	other := *c
	other.key = key
	return &other
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	value  any
}

// at follows a dotted path into the body; list items by their index.
func (a answer) at(path string) any {
	v := a.value
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func (a answer) text(path string) string { s, _ := a.at(path).(string); return s }

func (a answer) list(path string) []any { l, _ := a.at(path).([]any); return l }

// number is the number at path, zero when there is none.
func (a answer) number(path string) float64 { n, _ := a.at(path).(float64); return n }

func (c *client) request(ctx context.Context, t *testing.T, method, target, key string, body []byte) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == nil {
		req.Body = nil
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req
}

// raw makes one call and reads the whole answer.
func (c *client) raw(t *testing.T, method, target, key string, body []byte) answer {
	t.Helper()
	resp, err := c.http.Do(c.request(t.Context(), t, method, target, key, body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(a.body, &a.value); err != nil {
			t.Errorf("%s %s: the answer is not JSON: %v", method, target, err)
		}
	}
	return a
}

// call performs an operation of the description and holds the answer against
// it. args fill the path's parameters in order; a last one that begins with "?"
// is the query.
func (c *client) call(t *testing.T, operation, body string, args ...string) answer {
	t.Helper()
	op := c.api.operation(t, operation)
	query := ""
	if n := len(args); n > 0 && strings.HasPrefix(args[n-1], "?") {
		args, query = args[:n-1], args[n-1]
	}
	var payload []byte
	if body != "" {
		payload = []byte(body)
	}
	a := c.raw(t, op.method, c.url+op.fill(args)+query, c.key, payload)
	c.note(operation, a.status)
	c.api.check(t, op, a)
	if a.status != http.StatusUnauthorized && a.status != http.StatusRequestEntityTooLarge && operation != "getOpenAPI" && a.status < 500 {
		if a.header.Get("RateLimit") == "" || a.header.Get("RateLimit-Policy") == "" {
			t.Errorf("%s: an authenticated %d without RateLimit and RateLimit-Policy", operation, a.status)
		}
	}
	return a
}

// want is call, and the test ends unless the status is as wanted.
func (c *client) want(t *testing.T, status int, operation, body string, args ...string) answer {
	t.Helper()
	a := c.call(t, operation, body, args...)
	if a.status != status {
		t.Fatalf("%s %v %.300s: got %d, want %d\n%.500s", operation, args, body, a.status, status, a.body)
	}
	return a
}

func (c *client) note(operation string, status int) {
	if c.seen[operation] == nil {
		c.seen[operation] = map[int]bool{}
	}
	c.seen[operation][status] = true
}

// await looks until ready says so; the test ends when patience runs out.
func (c *client) await(t *testing.T, what string, look func() answer, ready func(answer) bool) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), c.patience)
	defer cancel()
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	for {
		a := look()
		if ready(a) {
			return a
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s did not come within %s: %.500s", what, c.patience, a.body)
		}
	}
}

// awaitStatus waits until a pod has a status.
func (c *client) awaitStatus(t *testing.T, id, status string) answer {
	t.Helper()
	return c.await(t, "pod "+id+" "+status, func() answer { return c.want(t, 200, "getPod", "", id) },
		func(a answer) bool { return a.text("status") == status })
}

// tidy removes something at the end of the test, whatever became of it.
func (c *client) tidy(t *testing.T, operation, id string) {
	t.Helper()
	op := c.api.operation(t, operation)
	t.Cleanup(func() {
		req := c.request(context.WithoutCancel(t.Context()), t, op.method, c.url+op.fill([]string{id}), c.key, nil)
		resp, err := c.http.Do(req)
		if err != nil {
			t.Errorf("tidying up %s: %v", id, err)
			return
		}
		_ = resp.Body.Close()
	})
}

// needsEmulator skips what only the emulator can be brought to do.
func (c *client) needsEmulator(t *testing.T) {
	t.Helper()
	if c.emulator == nil {
		t.Skip("only the emulator can be brought to do this")
	}
}

func escape(segment string) string { return url.PathEscape(segment) }
