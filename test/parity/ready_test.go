package parity

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// twoOrgs is a gateway with two organisations, of which one has a budget. The words in capitals stand
// for settings of a state.
const twoOrgs = `
platform: {base_url: "PLATFORM"}
redis: {embedded: true}
limits: {timeout: 10s FAILURE}
policies: {deadline: 10s}
timeouts: {notice: 1s, drain: 2s}
orgs:
  - id: acme
    credential: {env: ACME}
    budget: {gpus: 8}
    ACME_BUNDLE
    keys: [{id: key_acme, sha256: SHA256(key_acme), roles: [admin], limits: {minute: 600}}]
  - id: globex
    credential: {env: GLOBEX}
    GLOBEX_BUNDLE
    keys: [{id: key_globex, sha256: SHA256(key_globex), roles: [admin], limits: {minute: 600}}]
`

// unreachable is a bundle that cannot be fetched.
const unreachable = `bundle: {url: "http://127.0.0.1:1/policies.tar.gz", allow_unsigned: true}`

// The table of docs/operations.md says what the probe, the health checks of both doors and callers see
// in each state.
func TestReadinessTable(t *testing.T) {
	t.Parallel()
	want := documentedStates(t)
	for _, s := range []struct {
		state    string
		settings map[string]string
		key      string
		enter    func(d *door, end func())
		noticed  string
	}{
		{state: "all dependencies are up", noticed: `"status": "ready",`},
		{state: "Redis is down", enter: func(d *door, _ func()) { d.redis.Close() }, noticed: "the store is down"},
		{state: "Redis is full", enter: func(d *door, _ func()) { d.redis.SetError("OOM command not allowed when used memory > 'maxmemory'.") }, noticed: "the store is down"},
		{
			state:    "Redis is down, and `failure.read` is `closed` for every organisation",
			settings: map[string]string{" FAILURE": ", failure: {read: closed}"}, enter: func(d *door, _ func()) { d.redis.Close() }, noticed: "the store is down",
		},
		{
			state: "the ledger was lost and is being rebuilt", noticed: "rebuilding the ledgers",
			enter: func(d *door, _ func()) {
				d.platform.AddFault(platform.Fault{Operation: "listPods", Kind: platform.FaultHang})
				d.redis.FlushAll()
			},
		},
		{state: "one organisation has no policies: calls of this organisation", settings: map[string]string{"GLOBEX_BUNDLE": unreachable}, key: "key_globex", noticed: "1 of 2 organisations"},
		{state: "one organisation has no policies: calls of other organisations", settings: map[string]string{"GLOBEX_BUNDLE": unreachable}, noticed: "1 of 2 organisations"},
		{state: "no organisation has policies", settings: map[string]string{"GLOBEX_BUNDLE": unreachable, "ACME_BUNDLE": unreachable}, noticed: "2 of 2 organisations"},
		{state: "the gateway is draining, and its listeners are still open", enter: func(_ *door, end func()) { go end() }, noticed: "not serving"},
	} {
		if s.key == "" {
			s.key = "key_acme"
		}
		documented, ok := want[s.state]
		if !ok {
			t.Errorf("the table lacks the row %q", s.state)
		}
		delete(want, s.state)
		t.Run(s.state, func(t *testing.T) {
			t.Parallel()
			d := openDoor(t, "http", func(d *door) {
				d.text = twoOrgs
				for _, word := range []string{" FAILURE", "ACME_BUNDLE", "GLOBEX_BUNDLE"} {
					d.text = strings.ReplaceAll(d.text, word, s.settings[word])
				}
			})
			end := run(t, d)
			pod := fmt.Sprint(d.asPlatform(t, "POST", "/v2/pods", `{"name":"p","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)["id"])
			if s.settings["ACME_BUNDLE"] == "" {
				world.Until(t, "the gateway is ready", func() bool { return d.probe(t) == http.StatusOK })
				world.Until(t, "the ledger is complete and the quotas are known", func() bool {
					return d.ask(t, request("POST", "/v2/pods", "key_acme", `{"name":"q","image":"i:1","gpu":{"id":"NVIDIA L4"}}`)).Status == http.StatusCreated
				})
			}
			if s.enter != nil {
				s.enter(d, end)
			}
			var page string
			defer func() {
				if t.Failed() {
					t.Log(page, d.logs.String())
				}
			}()
			world.Until(t, "the state is noticed", func() bool {
				page = d.page(t, "/readyz")
				return strings.Contains(page, s.noticed)
			})
			if diff := cmp.Diff(documented, d.seen(t, s.key, pod)); diff != "" {
				t.Errorf("the probe, the doors, reads, calls that lower and raise cost (-documented +seen):\n%s\n%s", diff, d.page(t, "/readyz"))
			}
			if body := d.page(t, "/readyz"); strings.Contains(body, "acme") || strings.Contains(body, "globex") || strings.Contains(body, "127.0.0.1") {
				t.Errorf("the probe names organisations or addresses: %s", body)
			}
		})
	}
	if len(want) > 0 {
		t.Errorf("the test lacks the rows %v", want)
	}
}

// seen returns a row of the table as a prober, Envoy and a caller see it.
func (d *door) seen(t *testing.T, key, pod string) []string {
	t.Helper()
	doors := map[[2]bool]string{{true, true}: "ready", {false, false}: "not ready", {true, false}: "they differ", {false, true}: "they differ"}
	row := []string{fmt.Sprint(d.probe(t)), doors[[2]bool{d.ask(t, request("GET", "/tollgate/ready", "", "")).Status == http.StatusOK, d.health(t)}]}
	for _, raw := range []string{
		request("GET", "/v2/account/ssh-keys", key, ""),
		request("DELETE", "/v2/pods/"+pod, key, ""),
		request("POST", "/v2/pods", key, `{"name":"q","image":"i:1","gpu":{"id":"NVIDIA L4"}}`),
	} {
		switch a := d.ask(t, raw); {
		case a.Status == http.StatusServiceUnavailable:
			row = append(row, "503")
		case a.Status < http.StatusMultipleChoices, a.Status == http.StatusNotFound: // of another organisation
			row = append(row, "served")
		default:
			row = append(row, fmt.Sprint(a.Status, " ", a.Body))
		}
	}
	return row
}

// probe returns the status of the readiness probe.
func (d *door) probe(t *testing.T) int {
	t.Helper()
	w := httptest.NewRecorder()
	d.gateway.AdminHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8081/readyz", nil))
	return w.Code
}

// health asks the Envoy door whether it serves.
func (d *door) health(t *testing.T) bool {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	world.Serve(t, d.gateway.ExtProc(), l)
	conn, err := grpc.NewClient("passthrough:bufnet", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	res, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return res.GetStatus() == healthpb.HealthCheckResponse_SERVING
}

// documentedStates reads the table, by the first column.
func documentedStates(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| state | `/readyz` | data listener, Envoy | reads | calls that lower cost | calls that raise cost |\n")
	if !ok {
		t.Fatal("docs/operations.md lacks the table")
	}
	states := make(map[string][]string)
	for line := range strings.Lines(table) {
		cells := regexp.MustCompile(` *\| *`).Split(strings.TrimSpace(line), -1)
		if len(cells) != 8 {
			break
		}
		if !strings.HasPrefix(cells[1], "---") {
			states[cells[1]] = cells[2:7]
		}
	}
	return states
}
