package parity

import (
	"strings"
	"testing"
)

// TestTheRunInterfaceHasItsOwnListener: Envoy sends the calls that it asked about to the REST API,
// so a run that reaches the door by mistake is refused there, known or not, and sent nowhere.
func TestTheRunInterfaceHasItsOwnListener(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "envoy", func(d *door) {
		d.text = strings.Replace(d.text, `base_url: "PLATFORM"`, `base_url: "PLATFORM", run_url: "`+d.platform.RunURL+`"`, 1)
	})
	for _, ask := range []struct {
		method, target, key, body string
		status                    int
	}{
		{"POST", "/v2/e1/run", "key_research", `{"input":{}}`, 421},
		{"GET", "/v2/e1/health", "key_research", "", 421},
		{"POST", "/v2/e1/openai/v1/chat/completions", "key_research", `{"model":"a","messages":[{"role":"user"}]}`, 421},
		{"POST", "/v2/e1/run", "", `{"input":{}}`, 401},
		{"GET", "/v2/e1/run", "key_research", "", 405},
	} {
		a := d.ask(t, request(ask.method, ask.target, ask.key, ask.body))
		if a.Status != ask.status || !strings.HasPrefix(a.Body, `{"error":`) {
			t.Errorf("%s %s: %d %s, want %d in the shape of the run interface", ask.method, ask.target, a.Status, a.Body, ask.status)
		}
	}
	if calls := platformCalls(d); len(calls) != 0 {
		t.Errorf("calls reached the platform: %q", calls)
	}
}
