package clients

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/platform"
)

// hurried is a clock on which a worker is up at once, and a minute is a second.
func hurried() *platform.Clock {
	return platform.NewClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), 60)
}

// The OpenAI client calls a language model behind an endpoint by the run interface, and
// raises its own error for each refusal.
func TestOpenAI(t *testing.T) {
	t.Parallel()
	python := installed(t, "openai-3.54.0/bin/python")
	s := newStack(t, hurried())
	drive[report](t, s, python, "openai_run.py", "RUN="+s.gateway, "ONCE="+once).check(t, "openai.json")
}

// The endpoint clients of the Python SDK: run, run_sync, status, output, stream,
// cancel, health and purge_queue, of requests and of asyncio.
func TestPythonEndpoints(t *testing.T) {
	t.Parallel()
	for _, version := range sdks {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			python := installed(t, "runpod-"+version+"/bin/python")
			drive[report](t, newStack(t, hurried()), python, "sdk_run.py").check(t, "sdk_run-"+version+".json")
		})
	}
}
