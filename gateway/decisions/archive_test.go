package decisions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// eachStore runs a test on each kind of Redis.
func eachStore(t *testing.T, cfg settings.Archive, body func(t *testing.T, s *decisions.Archive, client redistest.Conn)) {
	t.Helper()
	redistest.Each(t, func(t *testing.T, r redistest.Redis) { body(t, decisions.NewArchive(r.Client, "t:", cfg), r.Client) })
}

// id is that of the nth decision, made so long ago.
func id(n int, ago time.Duration) string {
	u := ulid.ULID{15: byte(n), 14: byte(n >> 8)}
	if err := u.SetTime(ulid.Timestamp(time.Now().Add(-ago))); err != nil {
		panic(err)
	}
	return u.String()
}

func add(t *testing.T, s *decisions.Archive, org string, numbers ...int) {
	t.Helper()
	var entries []store.Line
	for _, n := range numbers {
		entries = append(entries, store.Line{List: org, ID: id(n, 0), Text: []byte(fmt.Sprintf(`{"n": %d}`, n))})
	}
	if added, err := s.Append(t.Context(), entries...); err != nil || added != len(entries) {
		t.Fatalf("added %d: %v", added, err)
	}
}

// list returns the numbers of the reports, last kept first and at most so many.
func list(t *testing.T, s *decisions.Archive, org string, since time.Time, most int) []int {
	t.Helper()
	got := []int{}
	_, err := s.List(t.Context(), org, decisions.Range{Since: since}, func(report json.RawMessage, _ time.Time) bool {
		var x struct{ N int }
		if err := json.Unmarshal(report, &x); err != nil {
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
	eachStore(t, settings.Archive{For: time.Hour, Max: 4}, func(t *testing.T, s *decisions.Archive, _ redistest.Conn) {
		add(t, s, "acme", 3, 4, 5)
		old := store.Line{List: "globex", ID: id(7, 23*time.Minute), Text: []byte("7")} // took long
		both := []store.Line{old, {List: "acme", ID: id(6, 0), Text: []byte(`{"n": 6}`)}}
		if added, err := s.Append(t.Context(), both...); err != nil || added != 2 {
			t.Fatalf("added %d of two organisations' (%v)", added, err)
		}
		if diff := cmp.Diff([]int{6, 5, 4, 3}, list(t, s, "acme", time.Time{}, 9)); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{6, 5, 4, 3}, list(t, s, "acme", time.Now(), 9)); diff != "" {
			t.Errorf("since now by a clock that is ahead (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{6}, list(t, s, "acme", time.Time{}, 1)); diff != "" {
			t.Errorf("the newest (-want +got):\n%s", diff)
		}
		if got := list(t, s, "acme", time.Now().Add(2*time.Minute), 9); len(got) != 0 {
			t.Errorf("%v were kept in the future", got)
		}
		orgs := []string{"acme", "globex", "initech"}
		if got, err := s.Find(t.Context(), orgs, old.ID); err != nil || string(got) != "7" {
			t.Errorf("find what took long: %s, %v", got, err)
		}
		for _, absent := range []string{id(9, 0), "", "7", "*", "+"} {
			if got, err := s.Find(t.Context(), orgs, absent); err != nil || got != nil {
				t.Errorf("found %q: %s, %v", absent, got, err)
			}
		}
		if got, err := s.Find(t.Context(), []string{"acme"}, old.ID); err != nil || got != nil {
			t.Errorf("found what is another organisation's: %s, %v", got, err)
		}
	})
}

// A list reads no more than it may, and begins behind a time.
func TestListsAreBounded(t *testing.T) {
	eachStore(t, settings.DefaultArchive(), func(t *testing.T, s *decisions.Archive, client redistest.Conn) {
		ids := make(map[int]string)
		for hour := 5; hour > 0; hour-- {
			ids[hour] = id(hour, time.Duration(hour)*time.Hour)
			at := fmt.Sprintf("%d-1", time.Now().Add(-time.Duration(hour)*time.Hour).UnixMilli())
			if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "t:{acme}", ID: at, Values: []any{ids[hour], strconv.Itoa(hour)}}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			in    decisions.Range
			want  string
			whole bool
		}{
			{decisions.Range{Most: 2}, "12", false},
			{decisions.Range{Most: 5}, "12345", true},
			{decisions.Range{Before: time.Now().Add(-200 * time.Minute)}, "345", true},
			{decisions.Range{Before: time.Now().Add(-200 * time.Minute), Most: 1}, "34", false}, // call 3 can have begun before
			{decisions.Range{Before: time.Now().Add(-200 * time.Minute), Since: time.Now().Add(-250 * time.Minute)}, "34", true},
		} {
			var got strings.Builder
			searched, err := s.List(t.Context(), "acme", c.in, func(report json.RawMessage, _ time.Time) bool {
				got.Write(report)
				return true
			})
			if err != nil || got.String() != c.want || searched.IsZero() != c.whole || !c.in.Before.IsZero() && !searched.Before(c.in.Before) {
				t.Errorf("%+v: %s, searched since %s, %v; want %s, %t", c.in, got.String(), searched, err, c.want, c.whole)
			}
		}
		if got, err := s.Find(t.Context(), []string{"acme"}, ids[4]); err != nil || string(got) != "4" {
			t.Errorf("found %s, %v", got, err)
		}
	})
}

// The oldest go when there are too many or their time is over.
func TestArchiveIsBounded(t *testing.T) {
	eachStore(t, settings.Archive{For: 1000 * time.Second, Max: 4}, func(t *testing.T, s *decisions.Archive, client redistest.Conn) {
		for _, ago := range []time.Duration{1001 * time.Second, 900 * time.Second} { // were kept
			at := fmt.Sprintf("%d-1", time.Now().Add(-ago).UnixMilli())
			values := []any{id(1, ago), fmt.Sprintf(`{"n": -%d}`, ago/time.Second)}
			if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "t:{acme}", ID: at, Values: values}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		add(t, s, "acme", 10)
		add(t, s, "acme", 20)
		if diff := cmp.Diff([]int{20, 10, -900}, list(t, s, "acme", time.Time{}, 9)); diff != "" {
			t.Errorf("after their time (-want +got):\n%s", diff)
		}
		add(t, s, "acme", 40, 50, 60)
		if diff := cmp.Diff([]int{60, 50, 40, 20}, list(t, s, "acme", time.Time{}, 9)); diff != "" {
			t.Errorf("too many (-want +got):\n%s", diff)
		}
		if left, err := client.PTTL(t.Context(), "t:{acme}").Result(); err != nil || left <= 0 || left > 1000*time.Second {
			t.Errorf("it ends in %v (%v), want within 1000 s", left, err)
		}
	})
}

// A list is read by pages.
func TestArchivePages(t *testing.T) {
	eachStore(t, settings.Archive{For: time.Hour, Max: 1000}, func(t *testing.T, s *decisions.Archive, _ redistest.Conn) {
		numbers, newest := make([]int, 1200), make([]int, 0, 1000)
		for i := range numbers {
			numbers[i] = i
		}
		for i := range 1000 {
			newest = append(newest, 1199-i)
		}
		add(t, s, "acme", numbers...)
		if diff := cmp.Diff(newest, list(t, s, "acme", time.Time{}, 2000)); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
	})
}

func TestArchiveAway(t *testing.T) {
	s := decisions.NewArchive(redistest.Away(t), "t:", settings.DefaultArchive())
	for what, err := range map[string]error{
		"add": func() error {
			added, err := s.Append(t.Context(), []store.Line{{List: "acme", ID: id(1, 0)}}...)
			if added != 0 {
				t.Errorf("added %d", added)
			}
			return err
		}(),
		"find": func() error { _, err := s.Find(t.Context(), []string{"acme"}, id(1, 0)); return err }(),
		"list": func() error {
			_, err := s.List(t.Context(), "acme", decisions.Range{}, func(json.RawMessage, time.Time) bool { return true })
			return err
		}(),
	} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want %v", what, err, store.ErrUnavailable)
		}
	}
}

// A follower gets all later entries, in order and once, more than a page of them too.
func TestFollow(t *testing.T) {
	eachStore(t, settings.DefaultArchive(), func(t *testing.T, s *decisions.Archive, _ redistest.Conn) {
		var got []int
		follow := func(place string) string {
			got = nil
			next, err := s.Follow(t.Context(), "acme", place, func(report json.RawMessage) {
				var x struct{ N int }
				if err := json.Unmarshal(report, &x); err != nil {
					t.Fatal(err)
				}
				got = append(got, x.N)
			})
			if err != nil {
				t.Fatal(err)
			}
			return next
		}
		empty := follow("")
		add(t, s, "acme", 1, 2)
		add(t, s, "globex", 3)
		if place := follow(empty); fmt.Sprint(got) != "[1 2]" {
			t.Errorf("from an empty store to %s: %v", place, got)
		}
		place := follow("")
		var want []int
		for n := range 450 {
			want = append(want, n)
		}
		add(t, s, "acme", want...)
		next := follow(place)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if follow(next); got != nil {
			t.Errorf("told once more: %v", got)
		}
	})
}
