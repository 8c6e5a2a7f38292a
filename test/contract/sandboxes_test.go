package contract

import (
	"bufio"
	"context"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// sandboxBody is a sandbox of the standard flavour, which its label tells from others.
const sandboxBody = `{"imageName":"alpine:3","idleTimeoutSeconds":120,"labels":{"made-by":"tollgate-contract"}}`

func sandboxes(t *testing.T, c *client) {
	t.Helper()
	t.Run("refusals", func(t *testing.T) { sandboxRefusals(t, c) })
	t.Run("life", func(t *testing.T) { sandboxLife(t, c) })
	t.Run("idle", func(t *testing.T) { sandboxIdle(t, c) })
	t.Run("no capacity", func(t *testing.T) { sandboxCapacity(t, c) })
}

func sandboxRefusals(t *testing.T, c *client) {
	t.Helper()
	for body, status := range map[string]int{
		`{}`:                                              400,
		`{"imageName":"i","templateId":"t"}`:              400,
		`{"imageName":"i","image":"i"}`:                   400,
		`{"templateId":"nope"}`:                           422,
		`{"imageName":"i","cpuFlavorId":"nope"}`:          422,
		`{"imageName":"i","vcpuCount":0}`:                 422,
		`{"imageName":"i","memoryInGb":0}`:                422,
		`{"imageName":"i","labels":{"a":1}}`:              422,
		`{"imageName":"i","env":["a"]}`:                   422,
		`{"imageName":"i","idleTimeoutSeconds":"60"}`:     422,
		`{"imageName":"i","maxLifetimeSeconds":1.5}`:      422,
		`{"imageName":"i","idleTimeoutSeconds":60,"x":1}`: 400,
	} {
		c.want(t, status, "createSandbox", body)
	}
	op := c.api.operation(t, "listSandboxes")
	for _, query := range []string{"?state=DEAD", "?labels=team"} {
		if a := c.raw(t, op.method, c.url+op.path+query, c.key, nil); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d, want 422", query, a.status)
		}
		c.note(op.id, http.StatusUnprocessableEntity)
	}
}

// when reads a time of an answer.
func (a answer) when(t *testing.T, path string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, a.text(path))
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return at
}

func sandboxLife(t *testing.T, c *client) {
	t.Helper()
	made := c.want(t, 201, "createSandbox", strings.Replace(sandboxBody, `"idle`, `"maxLifetimeSeconds":100000,"idle`, 1))
	id := made.text("id")
	c.tidy(t, "deleteSandbox", id)
	if made.text("state") == "CREATING" && made.at("compute") != nil || made.at("terminatedAt") != nil {
		t.Errorf("created: got %s", made.body)
	}
	if made.number("maxLifetimeSeconds") > 86_400 || made.number("idleTimeoutSeconds") != 120 {
		t.Errorf("clocks: got %s", made.body)
	}
	if d := made.when(t, "expiresAt").Sub(made.when(t, "createdAt")).Seconds(); math.Abs(d-made.number("maxLifetimeSeconds")) > 1 {
		t.Errorf("expires after %v s, want %v", d, made.number("maxLifetimeSeconds"))
	}
	up := c.await(t, "sandbox "+id, func() answer { return c.want(t, 200, "getSandbox", "", id) },
		func(a answer) bool { return a.text("state") == "RUNNING" })
	if up.number("compute.costPerHr") <= 0 || up.number("compute.vcpuCount") < 1 {
		t.Errorf("RUNNING: got %s", up.body)
	}
	ran := c.await(t, "the container of sandbox "+id, func() answer { return c.call(t, "execSandbox", `{"command":["echo","$HOME"]}`, id) },
		func(a answer) bool { return a.status != http.StatusConflict })
	if ran.status != http.StatusOK || ran.text("output") != "$HOME\n" || ran.at("error") != nil {
		t.Errorf("exec: got %d %s", ran.status, ran.body)
	}
	if a := c.want(t, 200, "execSandbox", `{"command":["false"]}`, id); a.text("error") == "" {
		t.Errorf("a command that fails: got %s", a.body)
	}
	active := c.want(t, 200, "getSandbox", "", id)
	if !active.when(t, "lastActivityAt").After(up.when(t, "lastActivityAt")) || !active.when(t, "idleExpiresAt").After(up.when(t, "idleExpiresAt")) {
		t.Errorf("a command is activity: got %s after %s", active.body, up.body)
	}
	c.want(t, 422, "execSandbox", `{"command":[]}`, id)
	c.want(t, 404, "execSandbox", `{"command":["true"]}`, "nope")
	sandboxLogs(t, c, id)
	sandboxEnd(t, c, id)
}

// sandboxEnd deletes a sandbox twice: it stays readable, and is listed only when its state
// is asked for.
func sandboxEnd(t *testing.T, c *client, id string) {
	t.Helper()
	listed := func(query string) bool {
		t.Helper()
		return strings.Contains(string(c.want(t, 200, "listSandboxes", "", query).body), id)
	}
	const ours, others = "?labels=made-by%3Dtollgate-contract", "?labels=made-by%3Dtollgate-contract&labels=made-by%3Dother"
	if !listed("") || !listed(ours) || listed(others) || listed("?state=TERMINATED") || !listed(ours+"&state=RUNNING") {
		t.Error("the lists of a sandbox that runs are wrong")
	}
	c.want(t, 204, "deleteSandbox", "", id)
	c.want(t, 204, "deleteSandbox", "", id)
	gone := c.want(t, 200, "getSandbox", "", id)
	if gone.text("state") != "TERMINATED" || gone.text("terminationReason") == "" || gone.text("terminatedAt") == "" || gone.at("compute") != nil {
		t.Errorf("deleted: got %s", gone.body)
	}
	if listed("") || listed(ours) || !listed(ours+"&state=TERMINATED") {
		t.Error("the lists of a sandbox that is over are wrong")
	}
	c.want(t, 409, "execSandbox", `{"command":["true"]}`, id)
	c.want(t, 409, "getSandboxLogs", "", id)
	c.want(t, 404, "deleteSandbox", "", "nope")
}

// sandboxLogs reads the first event of a log, which has nothing of the commands.
func sandboxLogs(t *testing.T, c *client, id string) {
	t.Helper()
	op := c.api.operation(t, "getSandboxLogs")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := c.http.Do(c.request(ctx, t, op.method, c.url+op.fill([]string{id})+"?tail=5000", c.key, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	c.note(op.id, resp.StatusCode)
	lines := bufio.NewScanner(resp.Body)
	for event := ""; event != "\n" && lines.Scan(); event = lines.Text() + "\n" {
		if strings.Contains(lines.Text(), "HOME") {
			t.Errorf("the log has the output of a command: %s", lines.Text())
		}
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("logs: got %d %v", resp.StatusCode, resp.Header)
	}
	for query, status := range map[string]int{"?tail=5001": 422, "?source=exec": 422} {
		if a := c.raw(t, op.method, c.url+op.fill([]string{id})+query, c.key, nil); a.status != status {
			t.Errorf("logs%s: got %d, want %d", query, a.status, status)
		}
		c.note(op.id, status)
	}
}

// sandboxIdle waits for the end of a sandbox that nobody uses, and compares what it cost:
// the rate is the one of its own record.
func sandboxIdle(t *testing.T, c *client) {
	t.Helper()
	id := c.want(t, 201, "createSandbox", strings.Replace(sandboxBody, "120", "60", 1)).text("id")
	c.tidy(t, "deleteSandbox", id)
	rate := 0.0
	over := c.await(t, "the end of sandbox "+id, func() answer { return c.want(t, 200, "getSandbox", "", id) }, func(a answer) bool {
		rate = max(rate, a.number("compute.costPerHr"))
		return a.text("state") == "TERMINATED"
	})
	lived := over.when(t, "terminatedAt").Sub(over.when(t, "createdAt"))
	if lived < 59*time.Second || lived > 75*time.Second || rate <= 0 {
		t.Errorf("it lived for %v at %v per hour, want a minute: %s", lived, rate, over.body)
	}
	c.needsEmulator(t)
	for _, b := range c.emulator.SandboxBills() {
		if b.ID == id && math.Abs(b.Total-rate*lived.Hours()) > 1e-6 {
			t.Errorf("it cost %v USD, want %v", b.Total, rate*lived.Hours())
		}
	}
}

func sandboxCapacity(t *testing.T, c *client) {
	t.Helper()
	c.needsEmulator(t)
	for operation, body := range map[string]string{"createSandbox": sandboxBody, "execSandbox": `{"command":["true"]}`} {
		c.emulator.AddFault(platform.Fault{Kind: platform.FaultStatus, Status: http.StatusServiceUnavailable, Operation: operation, Times: 1})
		c.want(t, http.StatusServiceUnavailable, operation, body)
	}
}
