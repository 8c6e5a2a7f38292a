package usage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/translate/usage"
)

// noon is when the calls of these tests are made.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func row(key, op, agent string, n int64, at time.Time) usage.Row {
	return usage.Row{
		RowKey: usage.RowKey{Key: key, Dialect: "v1", Operation: op, Agent: agent},
		Totals: usage.Totals{Count: n, First: at, Last: at, Statuses: map[string]int64{"2xx": n}},
	}
}

func write(t *testing.T, s *usage.Store, org, source string, seq int64, rows ...usage.Row) {
	t.Helper()
	if err := s.Write(t.Context(), usage.Batch{Org: org, Source: source, Seq: seq, Rows: rows}); err != nil {
		t.Fatal(err)
	}
}

func rows(t *testing.T, s *usage.Store, org string) []usage.Row {
	t.Helper()
	got, err := s.Rows(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSumsOfAllGatewaysAreAdded(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s := usage.NewStore(r.Client, "tg:usage")
		full := row("ann", "createPod", "launcher/1", 3, noon)
		full.First = noon.Add(-time.Hour)
		full.Statuses = map[string]int64{"2xx": 2, "5xx": 1}
		full.V2, full.Lost = map[string]int64{"createPod": 3}, map[string]int64{"locked": 1}
		write(t, s, "acme", "g1", 1, full, row("bob", "listPods", "none", 1, noon.Add(-time.Minute)))
		late := row("ann", "createPod", "launcher/1", 2, noon.Add(time.Second))
		late.V2 = map[string]int64{"createPod": 2, "updatePod": 2}
		write(t, s, "acme", "g2", 1, late)
		write(t, s, "acme", "g1", 2, row("ann", "createPod", "launcher/1", 1, noon.Add(-2*time.Hour))) // flushed late
		write(t, s, `other}{:"org`, "g1", 3, row("eve", "listPods", "none", 7, noon))

		full.Count, full.First, full.Last = 6, noon.Add(-2*time.Hour), noon.Add(time.Second)
		full.Statuses = map[string]int64{"2xx": 5, "5xx": 1}
		full.V2 = map[string]int64{"createPod": 5, "updatePod": 2}
		want := []usage.Row{full, row("bob", "listPods", "none", 1, noon.Add(-time.Minute))}
		if diff := cmp.Diff(want, rows(t, s, "acme")); diff != "" {
			t.Errorf("acme (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]usage.Row{row("eve", "listPods", "none", 7, noon)}, rows(t, s, `other}{:"org`)); diff != "" {
			t.Errorf("the other organisation (-want +got):\n%s", diff)
		}
		if got := rows(t, s, "nobody"); len(got) != 0 {
			t.Errorf("nobody has %v", got)
		}
	})
}

// A reply that was lost makes the recorder send the batch again.
func TestABatchThatComesAgainIsNotCountedAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s := usage.NewStore(r.Client, "tg:usage")
		for range 3 {
			write(t, s, "acme", "g1", 7, row("ann", "listPods", "none", 2, noon))
		}
		write(t, s, "acme", "g2", 7, row("ann", "listPods", "none", 1, noon))
		write(t, s, "acme", "g1", 8, row("ann", "listPods", "none", 1, noon))
		if got := rows(t, s, "acme"); len(got) != 1 || got[0].Count != 4 {
			t.Errorf("rows = %+v, want one with 4 calls", got)
		}
	})
}

func TestProgramsAreBoundedOverAllGateways(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s := usage.NewStore(r.Client, "tg:usage")
		for i := range 2 * usage.MaxAgents {
			write(t, s, "acme", "g1", int64(i+1), row("ann", "listPods", fmt.Sprintf("bot%d", i), 1, noon))
		}
		write(t, s, "acme", "g1", 1000, row("ann", "listPods", "bot0", 1, noon), row("ann", "listPods", "late", 1, noon), row("ann", "listPods", usage.OtherAgent, 1, noon))
		counts := map[string]int64{}
		for _, r := range rows(t, s, "acme") {
			counts[r.Agent] = r.Count
		}
		if len(counts) != usage.MaxAgents+1 || counts["bot0"] != 2 || counts[usage.OtherAgent] != usage.MaxAgents+2 {
			t.Errorf("%d programs, bot0 %d, others %d; want %d, 2, %d",
				len(counts), counts["bot0"], counts[usage.OtherAgent], usage.MaxAgents+1, usage.MaxAgents+2)
		}
	})
}

func TestRowsAreForgottenAfter400Days(t *testing.T) {
	server := miniredis.RunT(t)
	s := usage.NewStore(redistest.Once(t, server.Addr()), "tg:usage")
	write(t, s, "acme", "g1", 1, row("ann", "listPods", "old/1", 1, noon), row("bob", "listPods", "old/2", 1, noon))
	server.FastForward(usage.TTL - time.Hour)
	later := noon.Add(usage.TTL - time.Hour)
	write(t, s, "acme", "g1", 2, row("ann", "listPods", "old/1", 1, later))
	if got := rows(t, s, "acme"); len(got) != 2 {
		t.Fatalf("%d rows before the time, want 2", len(got))
	}
	server.FastForward(2 * time.Hour)
	if got := rows(t, s, "acme"); len(got) != 1 || got[0].Key != "ann" || got[0].Count != 2 {
		t.Errorf("rows = %+v, want ann's only", got)
	}
	write(t, s, "acme", "g1", 3, row("ann", "listPods", "new/1", 1, later.Add(2*time.Hour)))
	for key, want := range map[string][]string{
		"tg:usage{acme}:agents": {"old/1", "new/1"},
		"tg:usage{acme}:rows":   {`["ann","v1","listPods","old/1"]`, `["ann","v1","listPods","new/1"]`},
	} {
		got, err := server.ZMembers(key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	server.FastForward(usage.TTL + time.Hour)
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("still kept: %v", keys)
	}
}

func TestAllKeysOfAnOrganisationAreInOneSlot(t *testing.T) {
	server := miniredis.RunT(t)
	s := usage.NewStore(redistest.Once(t, server.Addr()), "tg:usage")
	write(t, s, "a}b", "g1", 1, row("ann", "listPods", "x{y}", 1, noon))
	for _, key := range server.Keys() {
		if !strings.HasPrefix(key, "tg:usage{a%7Db}:") {
			t.Errorf("key %q lacks the organisation's hash tag", key)
		}
	}
}
