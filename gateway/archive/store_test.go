package archive_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/archive"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
)

// eachStore runs a test on each kind of Redis.
func eachStore(t *testing.T, cfg archive.Config, body func(t *testing.T, s *archive.Store, client redis.UniversalClient)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, r redistest.Redis) { body(t, archive.New(r.Client, "t:", cfg), r.Client) })
}

// entry is the nth explanation, as many seconds ago as it is below a thousand.
func entry(n int) archive.Entry {
	return archive.Entry{
		ID: fmt.Sprintf("d%d", n), Time: time.Now().Add(time.Duration(n-1000) * time.Second),
		Summary: json.RawMessage(fmt.Sprintf(`{"n": %d}`, n)), Report: json.RawMessage(fmt.Sprintf(`{"report": %d}`, n)),
	}
}

func keep(t *testing.T, s *archive.Store, org string, numbers ...int) {
	t.Helper()
	var entries []archive.Entry
	for _, n := range numbers {
		entries = append(entries, entry(n))
	}
	if err := s.Keep(t.Context(), org, entries); err != nil {
		t.Fatal(err)
	}
}

// list returns the numbers of the summaries, newest first and at most so many.
func list(t *testing.T, s *archive.Store, org string, since time.Time, most int) []int {
	t.Helper()
	got := []int{}
	err := s.List(t.Context(), org, since, func(summary json.RawMessage) bool {
		var x struct{ N int }
		if err := json.Unmarshal(summary, &x); err != nil {
			t.Fatal(err)
		}
		got = append(got, x.N)
		return len(got) < most
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestArchive(t *testing.T) {
	eachStore(t, archive.Config{For: time.Hour, Max: 4}, func(t *testing.T, s *archive.Store, _ redis.UniversalClient) {
		keep(t, s, "acme", 5, 3, 4)
		keep(t, s, "globex", 7)
		if diff := cmp.Diff([]int{5, 4, 3}, list(t, s, "acme", time.Time{}, 9)); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{5, 4}, list(t, s, "acme", entry(4).Time.Add(-time.Second/2), 9)); diff != "" {
			t.Errorf("since the fourth (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{5}, list(t, s, "acme", time.Time{}, 1)); diff != "" {
			t.Errorf("the newest (-want +got):\n%s", diff)
		}
		for id, want := range map[string]string{"d3": `{"report": 3}`, "d7": `{"report": 7}`, "d9": ""} {
			if got, err := s.Find(t.Context(), []string{"acme", "globex", "initech"}, id); err != nil || string(got) != want {
				t.Errorf("find %s: %s, %v; want %s", id, got, err, want)
			}
		}
		if got, err := s.Find(t.Context(), []string{"acme"}, "d7"); err != nil || got != nil {
			t.Errorf("found what is another organisation's: %s, %v", got, err)
		}
	})
}

// The oldest go, report and all, when there are too many or their time is over.
func TestArchiveIsBounded(t *testing.T) {
	eachStore(t, archive.Config{For: 1000 * time.Second, Max: 4}, func(t *testing.T, s *archive.Store, client redis.UniversalClient) {
		keep(t, s, "acme", -100, 10, 20, 30)
		if diff := cmp.Diff([]int{30, 20, 10}, list(t, s, "acme", time.Time{}, 9)); diff != "" {
			t.Errorf("after their time (-want +got):\n%s", diff)
		}
		keep(t, s, "acme", 40, 50, 60)
		if diff := cmp.Diff([]int{60, 50, 40, 30}, list(t, s, "acme", time.Time{}, 9)); diff != "" {
			t.Errorf("too many (-want +got):\n%s", diff)
		}
		if n, err := client.HLen(t.Context(), "t:{acme}:reports").Result(); err != nil || n != 4 {
			t.Errorf("%d reports are kept (%v), want 4", n, err)
		}
		for _, key := range []string{"t:{acme}:index", "t:{acme}:reports"} {
			if left, err := client.PTTL(t.Context(), key).Result(); err != nil || left <= 0 || left > 1000*time.Second {
				t.Errorf("%s ends in %v (%v), want within 1000 s", key, left, err)
			}
		}
		keep(t, s, "acme", 2000) // by a clock that is ahead
		if got := list(t, s, "acme", time.Now().Add(time.Minute), 9); len(got) != 0 {
			t.Errorf("%v began in the future", got)
		}
	})
}

// A list is read by pages.
func TestArchivePages(t *testing.T) {
	eachStore(t, archive.Config{For: time.Hour, Max: 2000}, func(t *testing.T, s *archive.Store, _ redis.UniversalClient) {
		numbers := make([]int, 1200)
		for i := range numbers {
			numbers[i] = 1200 - i
		}
		keep(t, s, "acme", numbers[200:]...)
		if diff := cmp.Diff(numbers[200:], list(t, s, "acme", time.Time{}, 2000)); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	})
}

func TestArchiveAway(t *testing.T) {
	s := archive.New(redistest.Away(t), "t:", archive.DefaultConfig())
	for what, err := range map[string]error{
		"keep": s.Keep(t.Context(), "acme", []archive.Entry{entry(1)}),
		"find": func() error { _, err := s.Find(t.Context(), []string{"acme"}, "d1"); return err }(),
		"list": s.List(t.Context(), "acme", time.Time{}, func(json.RawMessage) bool { return true }),
	} {
		if !errors.Is(err, archive.ErrUnavailable) {
			t.Errorf("%s: %v, want %v", what, err, archive.ErrUnavailable)
		}
	}
}
