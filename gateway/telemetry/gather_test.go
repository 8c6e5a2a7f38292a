package telemetry_test

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// writings counts the lines of each writing.
type writings struct {
	mu    sync.Mutex // guards lines
	lines []int
}

func (w *writings) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, bytes.Count(p, []byte("\n")))
	return len(p), nil
}

func (w *writings) seen() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines
}

// Lines of reads that were answered are written together; refusals, changes, what is not
// a request, and the end of the log wait for nothing, and overtake nothing.
func TestLinesAreGathered(t *testing.T) {
	read := telemetry.Event{Method: "GET", Outcome: telemetry.OutcomeOK}
	refused, made := read, read
	refused.Outcome, made.Method = telemetry.OutcomeRefused, "POST"
	for name, tc := range map[string]struct {
		then func(r *telemetry.Recorder, l *slog.Logger, g *telemetry.Gathered)
		want []int
	}{
		"a while":   {func(*telemetry.Recorder, *slog.Logger, *telemetry.Gathered) { time.Sleep(50 * time.Millisecond) }, []int{2}},
		"a refusal": {func(r *telemetry.Recorder, _ *slog.Logger, _ *telemetry.Gathered) { r.Record(t.Context(), &refused) }, []int{3}},
		"a change":  {func(r *telemetry.Recorder, _ *slog.Logger, _ *telemetry.Gathered) { r.Record(t.Context(), &made) }, []int{3}},
		"others": {func(_ *telemetry.Recorder, l *slog.Logger, _ *telemetry.Gathered) {
			l.Info("a")
			l.With("k", 1).WithGroup("g").Info("b")
		}, []int{3, 1}},
		"the end": {func(_ *telemetry.Recorder, _ *slog.Logger, g *telemetry.Gathered) { _ = g.Flush() }, []int{2}},
		"many": {func(r *telemetry.Recorder, _ *slog.Logger, g *telemetry.Gathered) {
			_, _ = g.Write(make([]byte, 64<<10))
			r.Record(t.Context(), &read)
		}, []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w writings
				g := telemetry.Gather(&w)
				l := slog.New(g.Handler(slog.NewJSONHandler(g, nil)))
				r, err := telemetry.NewRecorder(l, sdktrace.NewTracerProvider(), metric.NewMeterProvider(), fixed)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					r.Record(t.Context(), &read)
				}
				if time.Sleep(49 * time.Millisecond); len(w.seen()) > 0 {
					t.Errorf("%v lines written before their time", w.seen())
				}
				tc.then(r, l, g)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, w.seen()); diff != "" {
					t.Errorf("lines of each writing (-want +got):\n%s", diff)
				}
				time.Sleep(time.Second)
			})
		})
	}
}
