package telemetry_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
)

// BenchmarkExchange is what an exchange costs that passes or is refused: its span, its
// line in the log and its metrics.
func BenchmarkExchange(b *testing.B) {
	p, err := telemetry.NewProviders(b.Context(), settings.Telemetry{SampleRatio: 0.01}, telemetry.Process{Version: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Shutdown(b.Context()) }()
	r := telemetry.NewRecorder(slog.New(slog.NewJSONHandler(io.Discard, nil)), p.Tracer(), p.Meter(), time.Now) //nolint:sloglint // encoding is measured
	e := telemetry.Event{
		Start: time.Now(), RequestID: "01M810RQXMJCPDEV0GNPH78ZJM", DecisionID: "01M810RQXMJCPDEV0GNPH78ZJM", Revision: "3f2a91c07d5e", Door: "http",
		Dialect: "v2", Method: "POST", Operation: "createPod", Peer: "127.0.0.1", Org: "bench", Team: "team1", Key: "caller1", Status: 201,
		Outcome: telemetry.OutcomeOK, PolicyRevision: "91c07d5e3f2a", LimitSource: "store", Hourly: 0.44, Priced: true,
		UpstreamStatus: 201, UpstreamLatency: time.Millisecond, BytesIn: 540, BytesOut: 900,
	}
	refused := e
	refused.Status, refused.Outcome, refused.Refusal, refused.Denied = 403, telemetry.OutcomeRefused, "forbidden", []string{"gpu_allow_list"}
	run := e
	run.Job = &telemetry.Job{Finished: true, Queued: time.Second, Executed: time.Second, Prompt: 100, Completion: 200, Cost: 0.01}
	for name, e := range map[string]*telemetry.Event{"passes": &e, "refused": &refused, "run": &run} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, _ := r.Begin(b.Context(), nil, "")
				_, span := r.Stage(ctx, "dispatch")
				span.End()
				r.Record(ctx, e)
			}
		})
	}
}
