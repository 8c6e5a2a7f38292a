package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/policies/ledger/redisstore"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

// large is how many resources an organisation has in TestALargeOrganisation.
const large = 100_000

// slow is what scripts stay far below, in microseconds.
const slow = 10_000

// TestALargeOrganisation adopts what an organisation has in time, looks at it again with
// few commands, holds up Redis by no script, and ends when told. A test of seconds on an
// idle machine may take a minute on a busy one.
func TestALargeOrganisation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	client := redistest.Client(t, redistest.Start(t))
	if err := client.ConfigSet(t.Context(), "slowlog-log-slower-than", fmt.Sprint(slow)).Err(); err != nil {
		t.Fatal(err)
	}
	reconciler := reconcilerOf(client, large)
	store := reconciler.Store
	pass := func(ctx context.Context) (ledger.Report, time.Duration, float64, error) {
		before, began := commands(t, client), time.Now()
		r, err := reconciler.Pass(ctx, "acme")
		return r, time.Since(began), float64(commands(t, client)-before) / large, err
	}

	stopped, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if _, took, _, err := pass(stopped); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
		t.Errorf("a pass that was told to end after a second took %s: %v", took, err)
	}
	hour := time.Now().Truncate(time.Hour)
	r, took, per, err := pass(t.Context())
	t.Logf("adopted %d in %s, %.2f commands each", r.Adopted, took, per)
	if state, err2 := store.Show(t.Context(), "acme"); err != nil || err2 != nil || len(state.Resources) != large || took > 2*time.Minute {
		t.Errorf("%d resources after %s: %v, %v", len(state.Resources), took, err, err2)
	}
	r, took, per, err = pass(t.Context())
	if !time.Now().Truncate(time.Hour).Equal(hour) { // the first pass of an hour rolls up the one before, and is not quiet
		r, took, per, err = pass(t.Context())
	}
	t.Logf("a quiet pass: %s, %.4f commands each", took, per)
	if err != nil || r.Resources != large || r.Adopted+r.Changed+r.Removed != 0 || per > 0.2 {
		t.Errorf("a quiet pass: %.2f commands a resource, %+v, %v", per, r, err)
	}
	began := time.Now()
	if err := reconciler.History.RollUp(t.Context(), "acme"); err != nil {
		t.Error(err)
	}
	t.Logf("all was rolled up in %s", time.Since(began))
	scripts(t, client)
}

// reconcilerOf follows a platform with so many pods.
func reconcilerOf(client redistest.Conn, n int) *ledger.Loop {
	store := redisstore.New(client, "tg:spend:", nil)
	found := make([]ledger.PlatformResource, n)
	for i := range found {
		found[i] = ledger.PlatformResource{
			Kind: operation.KindPod, ID: fmt.Sprintf("pod%010d", i), Name: fmt.Sprint("run-", i), Print: "NVIDIA L4 x 1, img:1", GPU: "NVIDIA L4",
			Amounts: ledger.Amounts{ledger.Burn: 430_000, ledger.GPUs: 1, ledger.Pods: 1}, Priced: true,
		}
	}
	return ledger.New(storetest.Deps(store, &storetest.World{Found: found})).Loop
}

// TestPassCost compares the commands of a quiet pass, those of scripts included, with committed
// figures. Adoption takes 8.1 commands a resource, and one more where a slow machine is at it in more milliseconds: costs are counted for each.
func TestPassCost(t *testing.T) {
	client := redistest.Client(t, redistest.Start(t))
	const n = 2_000
	reconciler := reconcilerOf(client, n)
	hour := time.Now().Truncate(time.Hour)
	for pass, most := range []float64{11, 0.02} { // it adopts, then it is quiet
		before := commands(t, client)
		if _, err := reconciler.Pass(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		per := float64(commands(t, client)-before) / n
		t.Logf("pass %d: %.3f commands a resource", pass, per)
		if !time.Now().Truncate(time.Hour).Equal(hour) {
			return // the first pass of an hour rolls up the one before
		}
		if per > most {
			t.Errorf("pass %d: %.3f commands a resource, want at most %.3f", pass, per, most)
		}
	}
}

// BenchmarkPass is a quiet pass over so many resources.
func BenchmarkPass(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			client := redistest.Client(b, redistest.Start(b))
			reconciler := reconcilerOf(client, n)
			pass := func() {
				if _, err := reconciler.Pass(b.Context(), "acme"); err != nil {
					b.Fatal(err)
				}
			}
			pass()
			before := commands(b, client)
			b.ReportAllocs()
			for b.Loop() {
				pass()
			}
			b.ReportMetric(float64(commands(b, client)-before)/float64(b.N), "commands/op")
		})
	}
}

// commands is how many commands a server has carried out, those of scripts included and those that begin a connection left out: a busy
// machine needs more connections.
func commands(tb testing.TB, client redistest.Conn) (n int64) {
	tb.Helper()
	text, err := client.Info(tb.Context(), "commandstats").Result()
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(text) {
		var calls int64
		name, rest, ok := strings.Cut(line, ":calls=")
		if ok && name != "cmdstat_hello" && !strings.HasPrefix(name, "cmdstat_client") {
			_, _ = fmt.Sscanf(rest, "%d,", &calls)
		}
		n += calls
	}
	return n
}

// scripts fails if the scripts took long on average. Those that took long by themselves
// are logged: on a busy machine, any command is held up now and then.
func scripts(t *testing.T, client redistest.Conn) {
	t.Helper()
	text, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var each float64
	if _, rest, ok := strings.Cut(text, "cmdstat_evalsha:"); ok {
		_, rest, _ = strings.Cut(rest, "usec_per_call=")
		_, _ = fmt.Sscanf(rest, "%f,", &each)
	}
	if each == 0 || each > slow {
		t.Errorf("a script took %.0f us on average, want at most %d", each, slow)
	}
	t.Logf("a script took %.0f us on average", each)
	entries, err := client.SlowLogGet(t.Context(), -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Logf("%s took %s", e.Args[0], e.Duration)
	}
}
