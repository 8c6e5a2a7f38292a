package callers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/callers"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// texts are the records of an organisation by id.
func texts(t *testing.T, s *callers.KeyStore, org string) (version string, records map[string]string) {
	t.Helper()
	version, entries, err := s.Load(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	records = make(map[string]string)
	for _, e := range entries {
		records[e.ID] = string(*e.Record)
	}
	return version, records
}

// Records are by organisation and id, with any id; each that is written or
// deleted changes the version, and none ends by itself.
func TestRecords(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s := callers.NewKeyStore(r.Client, "p:keys:")
		seen := map[string]bool{"": true}
		for _, step := range []struct{ org, id, next string }{
			{"acme", "ci", `{"n":1}`},
			{"acme", "cd", `{"n":2}`},
			{"acme", "ci", `{"n":3}`},
			{"globex", "ci", `{"n":4}`},
			{"acme", "#used", `{"n":5}`},
			{"acme", "cd", ""},
		} {
			e, err := s.Get(t.Context(), step.org, step.id)
			if err != nil {
				t.Fatal(err)
			}
			var next json.RawMessage
			if step.next != "" {
				next = json.RawMessage(step.next)
			}
			if _, swapped, err := s.Swap(t.Context(), step.org, e, next); err != nil || !swapped {
				t.Fatalf("%+v: %t, %v", step, swapped, err)
			}
			if version, _ := texts(t, s, step.org); seen[version] {
				t.Errorf("after %+v: version %q again", step, version)
			} else {
				seen[version] = true
			}
		}
		for org, want := range map[string]map[string]string{
			"acme": {"ci": `{"n":3}`, "#used": `{"n":5}`}, "globex": {"ci": `{"n":4}`}, "none": {},
		} {
			if _, got := texts(t, s, org); !cmp.Equal(got, want) {
				t.Errorf("records of %s: %v, want %v", org, got, want)
			}
		}
		for _, key := range r.Keys(t) {
			if left, err := r.Client.PTTL(t.Context(), key).Result(); err != nil || left > 0 {
				t.Errorf("%s ends in %v (%v), want never", key, left, err)
			}
		}
	})
}

// Other gateways hear of an organisation before anything of it changes, and that they have missed something when there was too much, or
// the store has lost an announcement.
func TestNews(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s := callers.NewKeyStore(r.Client, "p:keys:")
		swap := func(org, id string) {
			t.Helper()
			if _, done, err := s.Swap(t.Context(), org, callers.KeyRecord{ID: id}, json.RawMessage(`{}`)); err != nil || !done {
				t.Fatal(done, err)
			}
		}
		hear := func(since string, want []string, wantAll bool) string {
			t.Helper()
			mark, orgs, all, err := s.News(t.Context(), since)
			if err != nil || all != wantAll || !cmp.Equal(orgs, want) {
				t.Errorf("News = %v, all %t, %v, want %v, all %t", orgs, all, err, want, wantAll)
			}
			return mark
		}
		hear("", nil, false)
		swap("acme", "a")
		first := hear("", nil, true)
		swap("globex", "b")
		swap("acme", "b")
		second := hear(first, []string{"globex", "acme"}, false)
		hear(second, nil, false)
		for i := range 256 {
			swap("acme", fmt.Sprint(i))
		}
		third := hear(second, nil, true)
		if n := r.Client.LLen(t.Context(), "p:keys:#news").Val(); n != 256 {
			t.Errorf("%d announcements are kept, want 256", n)
		}
		if err := r.Client.Del(t.Context(), "p:keys:#news").Err(); err != nil {
			t.Fatal(err)
		}
		hear(third, nil, true)
	})
}

func TestUse(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		s := callers.NewKeyStore(r.Client, "p:keys:")
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
		if diff := cmp.Diff([]string{"p:keys:{acme}#used"}, r.Keys(t)); diff != "" {
			t.Errorf("keys in Redis (-want +got):\n%s", diff)
		}
	})
}

func TestUnavailable(t *testing.T) {
	s := callers.NewKeyStore(redistest.Away(t), "p:")
	_, _, load := s.Load(t.Context(), "acme")
	use := s.Use(t.Context(), "acme", map[string]time.Time{"ci": {}})
	_, used := s.Used(t.Context(), "acme")
	_, _, _, news := s.News(t.Context(), "")
	_, _, swap := s.Swap(t.Context(), "acme", callers.KeyRecord{ID: "ci"}, nil)
	for name, err := range map[string]error{"Load": load, "News": news, "Swap": swap, "Use": use, "Used": used, "Forget": s.Forget(t.Context(), "acme", "ci")} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
}
