package usage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/tollgate-dev/tollgate/translate/usage"
)

// paper is a Writer that keeps the batches it takes.
type paper struct {
	mu      sync.Mutex // guards what follows
	taken   []usage.Batch
	refused []usage.Batch
	fault   error
	// gate, when not nil, is waited for by every write.
	gate chan struct{}
}

func (p *paper) Write(ctx context.Context, b usage.Batch) error {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		p.refused = append(p.refused, b)
		return p.fault
	}
	p.taken = append(p.taken, b)
	return nil
}

func (p *paper) breaks(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = err
}

func (p *paper) calls() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var n int64
	for _, b := range p.taken {
		for _, row := range b.Rows {
			n += row.Count
		}
	}
	return n
}

// recorder returns a Recorder and a function that reads how much it dropped.
func recorder(t *testing.T, w usage.Writer) (*usage.Recorder, func() int64) {
	t.Helper()
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	r, err := usage.NewRecorder(usage.Deps{
		Writer: w, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Meter: provider.Meter("test"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, func() int64 {
		var data metricdata.ResourceMetrics
		if err := reader.Collect(context.WithoutCancel(t.Context()), &data); err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, scope := range data.ScopeMetrics {
			for _, m := range scope.Metrics {
				if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "tollgate.legacy.dropped" {
					n += sum.DataPoints[0].Value
				}
			}
		}
		return n
	}
}

func call(key, op string) usage.Call {
	return usage.Call{Org: "acme", Key: key, Dialect: "v1", Operations: []string{op}, Agent: "launcher/1.2", Status: 200}
}

func TestCallsAreSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		r, dropped := recorder(t, p)
		first := time.Now()
		r.Record(t.Context(), usage.Call{
			Org: "acme", Key: "ann", Dialect: "v1", Operations: []string{"createPod"}, Agent: "launcher/1.2", Status: 201,
			V2: []string{"createPod", "updatePod"}, Lost: []string{"locked", "locked", "minUploadMbps", "no field"},
		})
		time.Sleep(time.Second)
		again := call("ann", "createPod")
		again.Status, again.V2 = 503, []string{"createPod"}
		r.Record(t.Context(), again)
		other := call("ann", "createPod")
		other.Agent = ""
		r.Record(t.Context(), other)
		r.Record(t.Context(), usage.Call{Org: "acme", Key: "ann", Dialect: "graphql", Operations: []string{"myself", "gpuTypes"}, Agent: "launcher/1.9", Status: 200})
		if err := r.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		sum := func(n int64, from, to time.Time, statuses map[string]int64) usage.Totals {
			return usage.Totals{Count: n, First: from, Last: to, Statuses: statuses}
		}
		made := sum(2, first, first.Add(time.Second), map[string]int64{"2xx": 1, "5xx": 1})
		made.V2 = map[string]int64{"createPod": 2, "updatePod": 1}
		made.Lost = map[string]int64{"locked": 1, "minUploadMbps": 1, "other": 1}
		once := sum(1, first.Add(time.Second), first.Add(time.Second), map[string]int64{"2xx": 1})
		want := []usage.Row{
			{RowKey: usage.RowKey{Key: "ann", Dialect: "graphql", Operation: "gpuTypes", Agent: "launcher/1"}, Totals: once},
			{RowKey: usage.RowKey{Key: "ann", Dialect: "graphql", Operation: "myself", Agent: "launcher/1"}, Totals: once},
			{RowKey: usage.RowKey{Key: "ann", Dialect: "v1", Operation: "createPod", Agent: "launcher/1"}, Totals: made},
			{RowKey: usage.RowKey{Key: "ann", Dialect: "v1", Operation: "createPod", Agent: "none"}, Totals: once},
		}
		if len(p.taken) != 1 {
			t.Fatalf("%d batches, want 1", len(p.taken))
		}
		byName := cmpopts.SortSlices(func(a, b usage.Row) bool { return fmt.Sprint(a.RowKey) < fmt.Sprint(b.RowKey) })
		if diff := cmp.Diff(want, p.taken[0].Rows, byName); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		if n := dropped(); n != 0 {
			t.Errorf("dropped = %d, want 0", n)
		}
	})
}

func TestRunWritesEveryIntervalAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		r, _ := recorder(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		for range 1000 {
			r.Record(ctx, call("ann", "listPods"))
		}
		time.Sleep(usage.Interval + time.Millisecond)
		if n := p.calls(); n != 1000 || len(p.taken) != 1 {
			t.Errorf("%d calls in %d batches after an interval, want 1000 in one", n, len(p.taken))
		}
		r.Record(ctx, call("ann", "listPods"))
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if n := p.calls(); n != 1001 {
			t.Errorf("%d calls at the end, want 1001", n)
		}
	})
}

func TestAStoreThatIsAwayLosesNothingAndCountsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		r, dropped := recorder(t, p)
		p.breaks(errors.New("away"))
		for i := range 3 {
			r.Record(t.Context(), call("ann", fmt.Sprintf("op%d", i)))
			if err := r.Flush(t.Context()); err == nil {
				t.Fatal("Flush = nil, want the fault")
			}
		}
		for _, b := range p.refused {
			if b.Seq != p.refused[0].Seq || b.Source != p.refused[0].Source || b.Rows[0].Operation != "op0" {
				t.Errorf("tried batch %d of %s, want the first one until it is written", b.Seq, b.Source)
			}
		}
		p.breaks(nil)
		if err := r.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []string
		for i, b := range p.taken {
			order = append(order, b.Rows[0].Operation)
			if i > 0 && b.Seq <= p.taken[i-1].Seq {
				t.Errorf("batch %d follows batch %d", b.Seq, p.taken[i-1].Seq)
			}
		}
		if diff := cmp.Diff([]string{"op0", "op1", "op2"}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if n := dropped(); n != 0 {
			t.Errorf("dropped = %d, want 0", n)
		}
	})
}

// A writer that hangs holds nobody up.
func TestNotingNeverWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &paper{gate: make(chan struct{})}
		r, dropped := recorder(t, p)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		r.Record(ctx, call("ann", "op"))
		time.Sleep(usage.Interval)
		synctest.Wait() // the write hangs
		begin := time.Now()
		for i := range 10000 {
			r.Record(ctx, call(fmt.Sprintf("key%d", i), "op"))
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("noting took %v while the store hung", took)
		}
		if n := dropped(); n != 10000-4095 {
			t.Errorf("dropped = %d, want what 4096 rows do not hold", n)
		}
		close(p.gate)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if n := p.calls(); n != 4096 {
			t.Errorf("%d calls written, want 4096", n)
		}
	})
}

func TestWhatIsLeftWhenTheStoreIsAwayAtTheEndIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(paper)
		p.breaks(errors.New("away"))
		r, dropped := recorder(t, p)
		r.Record(t.Context(), call("ann", "op"))
		r.Record(t.Context(), call("ann", "op"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Run(ctx); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if n := dropped(); n != 2 {
			t.Errorf("dropped = %d, want 2", n)
		}
	})
}

func TestCallersCannotMakeProgramsWithoutEnd(t *testing.T) {
	p := new(paper)
	r, _ := recorder(t, p)
	for i := range 100 {
		c := call("ann", "op")
		c.Agent = fmt.Sprintf("bot%d/1", i)
		r.Record(t.Context(), c)
	}
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := p.taken[0].Rows
	others := int64(0)
	for _, row := range rows {
		if row.Agent == usage.OtherAgent {
			others = row.Count
		}
	}
	if len(rows) != usage.MaxAgents+1 || others != 100-usage.MaxAgents {
		t.Errorf("%d rows, %d calls by others; want %d and %d", len(rows), others, usage.MaxAgents+1, 100-usage.MaxAgents)
	}
}

func BenchmarkNote(b *testing.B) {
	r, err := usage.NewRecorder(usage.Deps{
		Writer: new(paper), Now: time.Now, Logger: slog.New(slog.DiscardHandler), Meter: metric.NewMeterProvider().Meter("bench"),
	})
	if err != nil {
		b.Fatal(err)
	}
	c := usage.Call{
		Org: "acme", Key: "ann", Dialect: "v1", Operations: []string{"createPod"}, Agent: "python-requests/2.31.0", Status: 201,
		V2: []string{"createPod"}, Lost: []string{"minUploadMbps"},
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Record(b.Context(), c)
	}
}
