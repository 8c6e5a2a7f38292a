package clients

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
	"github.com/tollgate-dev/tollgate/test/world"
)

// The OpenAI client calls a language model behind an endpoint by the run interface.
func TestOpenAI(t *testing.T) {
	python := installed(t, "openai-3.54.0/bin/python")
	s := newStack(t, platform.NewClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), 60))
	if !s.hasRunRoutes(t) {
		t.Skip("the gateway has no run interface yet")
	}
	drive[report](t, s, python, "openai_run.py", "RUN="+s.gateway).check(t, "openai.json")
}

// hasRunRoutes reports whether the gateway relays the run interface.
func (s *stack) hasRunRoutes(t *testing.T) bool {
	t.Helper()
	u, err := url.Parse(s.gateway)
	if err != nil {
		t.Fatal(err)
	}
	answer := world.Ask(t, u.Host, world.Request("GET", "/v2/endpoint/health", key, ""))
	return !strings.Contains(answer.Body, "no operation has this path")
}
