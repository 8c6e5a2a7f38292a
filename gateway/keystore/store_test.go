package keystore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/keystore"
	"github.com/tollgate-dev/tollgate/ratelimit/redistest"
)

// patience is how long a client waits: the machine may be busy.
const patience = time.Minute

// eachStore runs a test body over each kind of Redis there is.
func eachStore(t *testing.T, body func(t *testing.T, s *keystore.Store, client redis.UniversalClient)) {
	t.Helper()
	for name, addrs := range map[string]func(t *testing.T) []string{
		"embedded": func(t *testing.T) []string { t.Helper(); return []string{miniredis.RunT(t).Addr()} },
		"real":     func(t *testing.T) []string { t.Helper(); return []string{redistest.Start(t)} },
		"cluster":  func(t *testing.T) []string { t.Helper(); return redistest.Cluster(t, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			client := redis.NewUniversalClient(&redis.UniversalOptions{
				Addrs: addrs(t), MaxRetries: -1, DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
			})
			t.Cleanup(func() { _ = client.Close() })
			body(t, keystore.New(client, "p:keys:"), client)
		})
	}
}

func TestSwap(t *testing.T) {
	eachStore(t, func(t *testing.T, s *keystore.Store, _ redis.UniversalClient) {
		for _, step := range []struct {
			org, id, old, next string
			want               bool
		}{
			{"acme", "ci", "", "one", true},
			{"acme", "ci", "", "two", false},
			{"acme", "ci", "one", "two", true},
			{"acme", "ci", "one", "three", false},
			{"acme", "cd", "", "other", true},
			{"acme", ":version", "", "an id like another", true},
			{"globex", "ci", "", "theirs", true},
			{"acme", "cd", "other", "", true},
			{"acme", "cd", "other", "", false},
		} {
			got, err := s.Swap(t.Context(), step.org, step.id, step.old, step.next)
			if err != nil || got != step.want {
				t.Fatalf("Swap(%+v) = %v, %v", step, got, err)
			}
		}
		for org, want := range map[string]map[string]string{
			"acme": {"ci": "two", ":version": "an id like another"}, "globex": {"ci": "theirs"}, "none": {},
		} {
			version, got, err := s.Load(t.Context(), org)
			if err != nil || (version == "") != (org == "none") {
				t.Errorf("Load(%s): version %q, %v", org, version, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Load(%s) (-want +got):\n%s", org, diff)
			}
		}
	})
}

// A version changes with each record that is replaced, and with nothing else.
func TestVersions(t *testing.T) {
	eachStore(t, func(t *testing.T, s *keystore.Store, _ redis.UniversalClient) {
		orgs := []string{"acme", "globex", "none"}
		version := func() map[string]string {
			t.Helper()
			v, err := s.Versions(t.Context(), orgs)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if got, want := version(), map[string]string{"acme": "", "globex": "", "none": ""}; !cmp.Equal(got, want) {
			t.Errorf("versions of nothing: %v, want %v", got, want)
		}
		seen := map[string]bool{"": true}
		for i := range 3 {
			if _, err := s.Swap(t.Context(), "acme", fmt.Sprint(i), "", "x"); err != nil {
				t.Fatal(err)
			}
			now := version()
			if seen[now["acme"]] || now["globex"] != "" {
				t.Errorf("after change %d: %v, want another for acme alone", i, now)
			}
			seen[now["acme"]] = true
		}
		before := version()
		if _, err := s.Swap(t.Context(), "acme", "1", "y", "z"); err != nil {
			t.Fatal(err)
		}
		if err := s.Use(t.Context(), "acme", map[string]time.Time{"1": time.Unix(60, 0)}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, version()); diff != "" {
			t.Errorf("without a change (-before +after):\n%s", diff)
		}
		if none, err := s.Versions(t.Context(), nil); err != nil || len(none) != 0 {
			t.Errorf("versions of no organisation: %v, %v", none, err)
		}
	})
}

// Of many that write one id at once, one does.
func TestOneIsFirst(t *testing.T) {
	eachStore(t, func(t *testing.T, s *keystore.Store, _ redis.UniversalClient) {
		var firsts atomic.Int64
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() {
				first, err := s.Swap(t.Context(), "acme", "ci", "", fmt.Sprint("record ", i))
				if err != nil {
					t.Error(err)
				}
				if first {
					firsts.Add(1)
				}
			})
		}
		group.Wait()
		if n := firsts.Load(); n != 1 {
			t.Errorf("%d were first, want 1", n)
		}
	})
}

func TestUse(t *testing.T) {
	eachStore(t, func(t *testing.T, s *keystore.Store, client redis.UniversalClient) {
		at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
		for _, used := range []map[string]time.Time{{"ci": at, "cd": at}, {"ci": at.Add(time.Minute), "gone": at}} {
			if err := s.Use(t.Context(), "acme", used); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Forget(t.Context(), "acme", "gone"); err != nil {
			t.Fatal(err)
		}
		got, err := s.Used(t.Context(), "acme")
		if want := map[string]time.Time{"ci": at.Add(time.Minute), "cd": at}; err != nil || !cmp.Equal(got, want) {
			t.Errorf("Used = %v, %v, want %v", got, err, want)
		}
		_, _ = s.Swap(t.Context(), "acme", "ci", "", "x")
		if cluster, ok := client.(*redis.ClusterClient); ok {
			client, err = cluster.MasterForKey(t.Context(), "{acme}")
			if err != nil {
				t.Fatal(err)
			}
		}
		keys, err := client.Keys(t.Context(), "*").Result()
		slices.Sort(keys)
		if want := []string{"p:keys:{acme}:all", "p:keys:{acme}:used", "p:keys:{acme}:version"}; err != nil || !cmp.Equal(keys, want) {
			t.Errorf("keys in Redis: %v, %v, want %v", keys, err, want)
		}
	})
}

func TestUnavailable(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	s := keystore.New(client, "p:")
	server.SetError("LOADING " + strings.Repeat("x", 8))
	_, versions := s.Versions(t.Context(), []string{"acme"})
	_, _, load := s.Load(t.Context(), "acme")
	_, swap := s.Swap(t.Context(), "acme", "ci", "", "x")
	use := s.Use(t.Context(), "acme", map[string]time.Time{"ci": {}})
	_, used := s.Used(t.Context(), "acme")
	for name, err := range map[string]error{"Versions": versions, "Load": load, "Swap": swap, "Use": use, "Used": used, "Forget": s.Forget(t.Context(), "acme", "ci")} {
		if !errors.Is(err, keystore.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
}
