package platform

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when the manual clocks of the tests stand.
func start() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

// rig is an emulator on a manual clock that is called without a network.
type rig struct {
	*Server
	t   testing.TB
	key string
}

func newRig(t testing.TB, o Options) *rig {
	t.Helper()
	if o.Clock == nil {
		o.Clock = ManualClock(start())
	}
	s, err := New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &rig{Server: s, t: t, key: DefaultKey}
}

// as returns the rig calling with another key.
func (r *rig) as(key string) *rig { return &rig{Server: r.Server, t: r.t, key: key} }

type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (r *rig) call(method, target, body string) answer {
	r.t.Helper()
	return r.callOn(r.Server, method, target, body)
}

func (r *rig) callOn(h http.Handler, method, target, body string) answer {
	r.t.Helper()
	a := r.plain(h, method, target, body)
	if strings.Contains(a.header.Get("Content-Type"), "json") {
		if err := json.Unmarshal([]byte(a.raw), &a.body); err != nil {
			r.t.Fatalf("%s %s: answer is not a JSON object: %v\n%s", method, target, err, a.raw)
		}
	}
	return a
}

// plain makes a call without a look at the answer's body.
func (r *rig) plain(h http.Handler, method, target, body string) answer {
	var req *http.Request
	if body == "" {
		req = httptest.NewRequest(method, target, nil)
	} else {
		req = httptest.NewRequest(method, target, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return answer{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
}

// want calls and fails the test unless the status is as wanted.
func (r *rig) want(status int, method, target, body string) answer {
	r.t.Helper()
	a := r.call(method, target, body)
	if a.status != status {
		r.t.Fatalf("%s %s %s: got status %d, want %d\n%s", method, target, body, a.status, status, a.raw[:min(len(a.raw), 500)])
	}
	return a
}

// at follows a dotted path into a JSON value; list items by their index.
func (a answer) at(path string) any {
	var v any = a.body
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(x) {
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

const gpuPod = `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA GeForce RTX 4090"}}`

func (r *rig) newPod(body string) string {
	r.t.Helper()
	return r.want(201, "POST", "/v2/pods", body).text("id")
}

// setPodStatus is ChangePod of the status alone.
func (s *Server) setPodStatus(podID, status string) error {
	return s.ChangePod(podID, PodChange{Status: &status})
}

// setWorkerUnhealthy makes a worker of an endpoint fail its health checks from
// now on: it takes no more jobs and is dismissed after the idle timeout.
func (s *Server) setWorkerUnhealthy(endpointID, workerID string) error {
	return endpoints().alter(s, endpointID, func(a *account, e *endpoint, now time.Time) error {
		w := e.worker(workerID)
		if w == nil || w.Status == workerRunning {
			return fmt.Errorf("endpoint %s has no idle worker %q", endpointID, workerID)
		}
		w.Status, w.IdleSince = workerUnhealthy, now
		s.scheduleLocked(a, e, now)
		return nil
	})
}

// waitCalls waits for at least n calls to operation (any, when it is empty), or for the end of ctx, and returns them.
func (s *Server) waitCalls(ctx context.Context, operation string, n int) ([]Call, error) {
	for {
		calls := s.Calls()
		if operation != "" {
			calls = s.CallsTo(operation)
		}
		if len(calls) >= n {
			return calls, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return calls, ctx.Err()
		}
	}
}
