package parity

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// TestFailedCreatesAreTriedAgain: the platform's own problem document says that nothing was made,
// and a create that was never sent made nothing either.
func TestFailedCreatesAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, status := range []int{500, 503} {
		for what, m := range makers {
			if strings.HasPrefix(what, "v2 ") {
				continue // whose callers are told, and try again themselves
			}
			t.Run(http.StatusText(status)+"/"+what, func(t *testing.T) {
				t.Parallel()
				l := &lossy{}
				d, ask := l.open(t, "http", m)
				d.platform.AddFault(platform.Fault{Operation: m.operation, Kind: platform.FaultStatus, Status: status, Times: 1})
				got := ask()
				made := d.made(t, m.operation)
				if n := len(d.platform.CallsTo(m.operation)); len(made) != 1 || answeredID(got) != made[0] {
					t.Errorf("%d %s after %d creates, want the id of the one in %v", got.Status, got.Body, n, made)
				}
			})
		}
	}
}

// TestFailuresAreLookedForOnce: a create that failed by the platform's account, or came too late
// or too early, is looked for once. The caller gets the resource, or the platform's answer, and
// the budget has the room again.
func TestFailuresAreLookedForOnce(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 425, 500, 503} {
		for _, name := range []string{"http", "envoy"} {
			for _, what := range []string{"v1 pod", "v2 pod", "graphql pod"} {
				t.Run(strings.Join([]string{name, what, http.StatusText(status)}, "/"), func(t *testing.T) {
					t.Parallel()
					l := &lossy{lose: said(status), commit: 1}
					d, ask := l.open(t, name, makers[what], func(d *door) {
						d.text = strings.Replace(d.text, "{id: platform}", "{id: platform, budget: {gpus: 5}}", 1)
					})
					got := ask()
					made := d.made(t, "createPod")
					if len(made) != 1 || answeredID(got) != made[0] || l.creates != 1 || l.looks != 1 {
						t.Fatalf("%d %s after %d creates and %d looks, want the id of the one in %v", got.Status, got.Body, l.creates, l.looks, made)
					}
					if what != "v2 pod" {
						return // whose plans try again what the platform fails
					}
					l.mu.Lock()
					l.commit = -1
					l.mu.Unlock()
					if got = ask(); got.Status != status || l.looks != 1 {
						t.Errorf("%d %s after %d looks, want %d after one", got.Status, got.Body, l.looks, status)
					}
					d.reconcile(t)
					for _, s := range d.ledger(t).Scopes {
						if s.Scope == "team platform" && (s.Committed.GPUs != 1 || s.Reserved.GPUs != 0) {
							t.Errorf("%d GPUs are committed and %d reserved, want 1 and none", s.Committed.GPUs, s.Reserved.GPUs)
						}
					}
				})
			}
		}
	}
}

// TestAPlatformThatCannotBeReached has seen nothing of the call: there is nothing to
// wait for.
func TestAPlatformThatCannotBeReached(t *testing.T) {
	for _, what := range []string{"v1 registry", "graphql registry"} {
		t.Run(what, func(t *testing.T) {
			closed := httptest.NewServer(http.NotFoundHandler())
			closed.Close()
			d := openDoor(t, "http", func(d *door) { d.upstream = closed.URL })
			got := d.ask(t, makers[what].request(""))
			if unfinishedAnswer(got) || answeredID(got) != "" {
				t.Errorf("%d %s, want a failure that is certain", got.Status, got.Body)
			}
		})
	}
}
