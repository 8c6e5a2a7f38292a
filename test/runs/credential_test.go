package runs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// sight is a platform that keeps the credentials it got, and says them.
type sight struct {
	mu  sync.Mutex // guards got
	got []string
}

func (s *sight) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	auth := r.Header.Get("Authorization")
	s.mu.Lock()
	s.got = append(s.got, auth)
	s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/wrong") {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = fmt.Fprintf(w, `{"error":"you sent %s"}`, auth)
}

// TestRunCredential: runs and load-balanced calls carry the credential that is named for
// them, and no other; the REST API gets the organisation's. No answer has it.
func TestRunCredential(t *testing.T) {
	for name, tc := range map[string]struct{ setting, want string }{
		"without": {"", "Bearer pk-acme-" + canary},
		"with":    {"run_credential: {env: ACME_JOBS}", "Bearer pk-runs-" + canary},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(sight)
			worker := httptest.NewServer(s)
			t.Cleanup(worker.Close)
			r := newRig(t, upstream(t, s.ServeHTTP), balancedAt(t, worker.URL), policies(tc.setting+"\n    policies: []"))
			id := r.endpoint(t) // by the REST API, whose emulator knows the organisation's key alone
			for _, target := range []string{"/v2/" + id + "/run", "/v2/" + id + "/openai/v1/chat/completions", "/lb/" + id + "/x", "/lb/" + id + "/wrong"} {
				body := `{"input":{}}`
				if strings.Contains(target, "chat") {
					body = hello
				}
				if a := r.ask(t, "POST", target, "key_research", body); a.Status >= 500 || strings.Contains(a.Body, canary) {
					t.Errorf("%s: %d %s", target, a.Status, a.Body)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.got) != 4 {
				t.Errorf("the platform was asked %d times, want 4", len(s.got))
			}
			for _, got := range s.got {
				if got != tc.want {
					t.Errorf("sent with %q, want %q", got, tc.want)
				}
			}
		})
	}
}
