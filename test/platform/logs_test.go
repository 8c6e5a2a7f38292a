package platform

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readLog opens a log stream over the network and returns a function that reads
// the next event as "id line", and the header of the answer.
func readLog(t *testing.T, p *Instance, target, lastID string) (next func() string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+DefaultKey)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	transport := &http.Transport{}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close(); transport.CloseIdleConnections() })
	lines := bufio.NewScanner(resp.Body)
	return func() string {
		var event []string
		for lines.Scan() {
			if lines.Text() == "" {
				return strings.Join(event, " ")
			}
			event = append(event, lines.Text())
		}
		return strings.Join(event, " ")
	}, resp.Header
}

func newPodOn(t *testing.T, p *Instance) string {
	t.Helper()
	return (&rig{Server: p.Server, t: t, key: DefaultKey}).newPod(gpuPod)
}

func TestLogStream(t *testing.T) {
	p := RunT(t, WithClock(ManualClock(start())))
	id := newPodOn(t, p)
	p.Clock().Advance(15 * time.Second)
	next, header := readLog(t, p, "/v2/pods/"+id+"/logs", "")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if header.Get("RateLimit") == "" {
		t.Error("no RateLimit on the stream")
	}
	want := []string{
		`id: 2026-06-01T12:00:00Z/000000000001 data: {"ts":"2026-06-01T12:00:00Z","source":"system","line":"looking for a machine"}`,
		`id: 2026-06-01T12:00:02Z/000000000002 data: {"ts":"2026-06-01T12:00:02Z","source":"system","line":"image img:1 is ready"}`,
		`id: 2026-06-01T12:00:04Z/000000000003 data: {"ts":"2026-06-01T12:00:04Z","source":"system","line":"container started"}`,
		`id: 2026-06-01T12:00:04Z/000000000004 data: {"ts":"2026-06-01T12:00:04Z","source":"container","line":"ready"}`,
		`id: 2026-06-01T12:00:14Z/000000000005 data: {"ts":"2026-06-01T12:00:14Z","source":"container","line":"alive for 10s"}`,
	}
	for i, w := range want {
		if diff := cmp.Diff(w, next()); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i, diff)
		}
	}
	p.Clock().Advance(10 * time.Second)
	if got := next(); !strings.Contains(got, "alive for 20s") {
		t.Errorf("live line: got %q", got)
	}
	if err := p.setPodStatus(id, "EXITED"); err != nil {
		t.Fatal(err)
	}
	if got := next(); !strings.Contains(got, "container stopped") {
		t.Errorf("stop seen live: got %q", got)
	}
	if err := p.setPodStatus(id, "TERMINATED"); err != nil {
		t.Fatal(err)
	}
	if got := next(); got != "" {
		t.Errorf("the stream of a pod that is gone goes on: %q", got)
	}
}

func TestLogPosition(t *testing.T) {
	p := RunT(t, WithClock(ManualClock(start())))
	id := newPodOn(t, p)
	p.Clock().Advance(time.Hour)
	tests := []struct{ name, query, lastID, first string }{
		{"tail", "?tail=1", "", "alive for 59m50s"},
		{"source system", "?source=system&tail=2", "", "is ready"},
		{"source container", "?source=container&tail=5000", "", `"ready"`},
		{"since", "?since=2026-06-01T12:30:04Z", "", "alive for 30m0s"},
		{"since beats tail", "?since=2026-06-01T12:30:05Z&tail=1", "", "alive for 30m10s"},
		{"last event", "", "2026-06-01T12:00:04Z/000000000003", `"ready"`},
		{"last event, bare", "", "2026-06-01T12:00:04Z", "alive for 10s"},
		{"last event beats all", "?since=2026-06-01T12:00:00Z&tail=1", "2026-06-01T12:59:44Z", "alive for 59m50s"},
	}
	for _, tt := range tests {
		next, _ := readLog(t, p, "/v2/pods/"+id+"/logs"+tt.query, tt.lastID)
		if got := next(); !strings.Contains(got, tt.first) {
			t.Errorf("%s: first event %q, want one with %q", tt.name, got, tt.first)
		}
	}
	next, _ := readLog(t, p, "/v2/pods/"+id+"/logs?tail=0", "")
	if _, err := p.waitCalls(t.Context(), "getPodLogs", len(tests)+1); err != nil {
		t.Fatal(err)
	}
	p.Clock().Advance(10 * time.Second)
	if got := next(); !strings.Contains(got, "alive for 1h0m0s") && !strings.Contains(got, "alive for 59m") {
		t.Errorf("live only: got %q", got)
	}
}

func TestLogRefusals(t *testing.T) {
	r := newRig(t, Options{})
	id := r.newPod(gpuPod)
	for _, q := range []string{"tail=-1", "tail=5001", "tail=x", "source=both", "since=yesterday"} {
		r.want(422, "GET", "/v2/pods/"+id+"/logs?"+q, "")
	}
	r.want(404, "GET", "/v2/pods/nope/logs", "")
	req := httptest.NewRequest(http.MethodGet, "/v2/pods/"+id+"/logs", nil)
	req.Header.Set("Authorization", "Bearer "+DefaultKey)
	req.Header.Set("Last-Event-ID", "17")
	rec := httptest.NewRecorder()
	r.ServeHTTP(rec, req)
	if rec.Code != 422 {
		t.Errorf("Last-Event-ID that is none: got %d", rec.Code)
	}
}
