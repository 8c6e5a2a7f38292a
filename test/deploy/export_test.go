package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/test/otlptest"
	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// auditSecret signs the deliveries to the webhook of these tests.
const auditSecret = "a secret of twenty-four bytes"

// auditHook takes lines of the audit log.
type auditHook struct {
	*httptest.Server

	mu    sync.Mutex // guards lines
	lines []string
}

func newAuditHook(t *testing.T) *auditHook {
	h := new(auditHook)
	check, err := webhooks.NewWebhookRaw([]byte(auditSecret))
	if err != nil {
		t.Fatal(err)
	}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = check.Verify(body, r.Header)
		}
		var event struct{ Data json.RawMessage }
		if err == nil {
			err = json.Unmarshal(body, &event)
		}
		if err != nil {
			t.Errorf("%s: %v", body, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, string(event.Data))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *auditHook) taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// auditBodies are the lines of the audit log among log records.
func auditBodies(r *otlptest.Receiver) (bodies []string) {
	for _, l := range r.Logs() {
		if l.EventName == "tollgate.audit" {
			bodies = append(bodies, l.Body.GetStringValue())
		}
	}
	return bodies
}

// The records of a gateway whose receiver of OTLP is away arrive from the next process, in
// files that were put aside, too: each line as it stands in the file, so that the chain of
// what arrived is whole. The webhook has it all meanwhile. The log and metrics arrive
// likewise, by either protocol.
func TestExportsOfTheProgram(t *testing.T) {
	t.Parallel()
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		receiver := otlptest.RunT(t)
		testExportsOfTheProgram(t, receiver, `endpoint: "`+receiver.URL+`"`)
	})
	t.Run("grpc", func(t *testing.T) {
		t.Parallel()
		receiver := otlptest.New(t)
		testExportsOfTheProgram(t, receiver, `protocol: grpc, endpoint: "http://`+receiver.ServeGRPC(t, nil)+`"`)
	})
}

func testExportsOfTheProgram(t *testing.T, receiver *otlptest.Receiver, otlp string) {
	t.Helper()
	hook := newAuditHook(t)
	receiver.Answer(http.StatusServiceUnavailable)
	addr := freeAddr(t)
	log := filepath.Join(t.TempDir(), "audit.log")
	path := configure(t, addr, freeAddr(t), platform.RunT(t).URL, forTests+fmt.Sprintf(`telemetry: {sample_ratio: 1, otlp: {%[1]s, metrics: 1s, logs: true}}
audit: {file: {path: %[2]s, max_bytes: 2000, keep: 50}, otlp: {%[1]s}, webhook: {url: "%[3]s", secret: {env: AUDIT_SECRET}, networks: [127.0.0.0/8]}}
`, otlp, log, hook.URL))
	serve := func() *process {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary.Path(t), "serve", "-c", path)
		cmd.Env = append(os.Environ(), "ACME_KEY="+platform.DefaultKey, "AUDIT_SECRET="+auditSecret)
		p := start(t, cmd)
		p.wait(t, `"msg":"serving"`)
		return p
	}
	create := func() {
		t.Helper()
		if a := world.Ask(t, addr, world.Request("POST", "/v2/pods", callerKey, `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA L4"}}`)); a.Status != http.StatusCreated {
			t.Fatalf("create: %d %s", a.Status, a.Body)
		}
	}
	first := serve()
	for range 6 {
		create()
	}
	first.wait(t, `"msg":"audit log shipping failed","`)
	first.stop(t)
	receiver.Answer(http.StatusOK)
	second := serve()
	create()
	want := auditFile(t, log)
	if len(want) < 2*7+2 {
		t.Fatalf("the audit log has %d lines, want two of each call and one of each process", len(want))
	}
	world.Until(t, fmt.Sprintf("%d lines have come by each way, and metrics", len(want)), func() bool {
		return len(auditBodies(receiver)) >= len(want) && len(hook.taken()) >= len(want) && receiver.Metric("tollgate.request.duration") != nil
	})
	second.stop(t)
	for by, lines := range map[string][]string{"OTLP": auditBodies(receiver), "webhook": hook.taken()} {
		if !slices.Equal(lines, want) {
			t.Errorf("by %s came\n%s\nwant\n%s", by, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
		if err := new(audit.Chain).Verify(by, strings.NewReader(strings.Join(lines, "\n")), func(string) {}); err != nil {
			t.Error(err)
		}
	}
	exchanges := 0
	for _, l := range receiver.Logs() {
		if a := otlptest.Attributes(l.Attributes); l.Body.GetStringValue() == "exchange" && a["operation"] == "createPod" && len(l.TraceId) > 0 {
			exchanges++
		}
	}
	if exchanges != 1 {
		t.Errorf("%d records of the exchange, want that of the second process", exchanges)
	}
}

// auditFile returns the lines of an audit log and of the files put aside.
func auditFile(t *testing.T, path string) (lines []string) {
	t.Helper()
	names := []string{path}
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.%d", path, n)
		if _, err := os.Stat(name); err != nil {
			break
		}
		names = slices.Insert(names, 0, name)
	}
	if len(names) < 2 {
		t.Error("the log was never put aside")
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
	}
	return lines
}
