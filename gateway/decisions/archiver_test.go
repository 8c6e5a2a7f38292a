package decisions

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/oklog/ulid/v2"

	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/tasks"
	"github.com/tollgate-dev/tollgate/gateway/telemetry"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// refusedExchange is one that ended with a refusal.
func refusedExchange(org string) explain.Entry {
	return explain.Ended(&filter.Exchange{Caller: &identity.Caller{Org: org}, Event: &telemetry.Event{
		DecisionID: ulid.Make().String(), Org: org, Start: time.Now(), Method: "POST", Status: 403, Refusal: "forbidden",
	}})
}

// An archiver has one writer, drops decisions that do not fit, and goes on after a store that
// was away.
func TestArchiver(t *testing.T) {
	server := miniredis.RunT(t)
	var begun []func()
	a := &archiver{
		store: NewArchive(redistest.Once(t, server.Addr()), "t:", settings.DefaultArchive()),
		chain: func() *filter.Chain { return new(filter.Chain) }, logger: slog.New(slog.DiscardHandler),
	}
	a.backlog.Write, a.backlog.Go = a.writeAll, func(f func()) { begun = append(begun, f) }
	kept := func() int {
		list, _, err := a.list(t.Context(), "acme", explain.Query{Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	for range tasks.MaxQueued + 3 {
		a.add(refusedExchange("acme"))
	}
	if len(begun) != 1 {
		t.Fatalf("%d writers, want one", len(begun))
	}
	begun[0]()
	if got := [3]int64{a.written.Load(), a.dropped.Load(), a.failed.Load()}; got != [3]int64{tasks.MaxQueued, 3, 0} || kept() != tasks.MaxQueued {
		t.Errorf("written, dropped, failed = %v with %d kept, want %d, 3, 0", got, kept(), tasks.MaxQueued)
	}

	server.SetError("LOADING")
	a.add(refusedExchange("acme"))
	begun[1]()
	server.SetError("")
	a.add(refusedExchange("acme"))
	begun[2]()
	if got := [2]int64{a.written.Load(), a.failed.Load()}; got != [2]int64{tasks.MaxQueued + 1, 1} || kept() != tasks.MaxQueued+1 {
		t.Errorf("after the store was away: written, failed = %v with %d kept", got, kept())
	}
}

// The words that a query looks for in a report, before it is read, are in the report of each decision that it selects.
func TestWordsOfReports(t *testing.T) {
	t.Parallel()
	const odd = `<a> & "b" \ é`
	x := explain.Report{DecisionID: "d", Operation: odd, Verdict: explain.Refused, Caller: explain.Caller{Org: "acme", Team: odd, Key: odd}, Own: &explain.OwnAction{}}
	report, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	words := wordsOf(explain.Query{Team: odd, Key: odd, Operation: odd, Refused: true, Own: true})
	for _, word := range words {
		if !bytes.Contains(report, word) {
			t.Errorf("%s is not in %s", word, report)
		}
	}
	if len(words) != 5 || len(wordsOf(explain.Query{})) != 0 {
		t.Errorf("%d words, want 5, and none for all decisions", len(words))
	}
}

func BenchmarkArchiver(b *testing.B) {
	a := &archiver{
		store: NewArchive(redistest.Client(b, redistest.Start(b)), "t:", settings.DefaultArchive()),
		chain: func() *filter.Chain { return new(filter.Chain) }, logger: slog.New(slog.DiscardHandler),
	}
	a.backlog.Write, a.backlog.Go = a.writeAll, func(f func()) { f() }
	for b.Loop() {
		a.add(refusedExchange("acme"))
	}
}
