package translate_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
)

// warnings returns the warnings that d reports.
func warnings(d *translate.Client) []string {
	out := &translate.Outgoing{Header: http.Header{}}
	d.Report(out, "")
	return out.Warnings
}

func TestMemoryStore(t *testing.T) {
	storetest.Test(t, func(*testing.T) (translate.Store, func(time.Duration)) {
		now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		store := storetest.NewMemoryStore(func() time.Time { return now })
		return store, func(d time.Duration) { now = now.Add(d) }
	})
}

func TestNotesSurviveARoundTrip(t *testing.T) {
	d := talk(storetest.NewMemoryStore(time.Now))
	key := translate.Key{Account: "acme", Kind: translate.KindEndpoint, ID: "e1"}
	note := translate.EndpointNote{TemplateID: "t1", GPUTypeIDs: []string{"b", "a"}, IdleTimeout: 7}
	translate.SaveNote(t.Context(), d, key, note)
	got, ok, err := translate.LoadNote[translate.EndpointNote](t.Context(), d, key)
	if diff := cmp.Diff(note, got); diff != "" || !ok || err != nil {
		t.Errorf("LoadNote ok=%t, %v (-want +got):\n%s", ok, err, diff)
	}
	all, err := translate.LoadNotes[translate.EndpointNote](t.Context(), d, translate.KindEndpoint)
	if diff := cmp.Diff(map[string]translate.EndpointNote{"e1": note}, all); diff != "" || err != nil {
		t.Errorf("LoadNotes: %v (-want +got):\n%s", err, diff)
	}
	translate.DropNote(t.Context(), d, key)
	if _, ok, err := translate.LoadNote[translate.EndpointNote](t.Context(), d, key); ok || err != nil {
		t.Errorf("LoadNote after DropNote = %t, %v, want none", ok, err)
	}
	if lines := warnings(d); len(lines) != 0 {
		t.Errorf("warnings %q", lines)
	}
}

// talk begins a conversation of acme's.
func talk(store translate.Store) *translate.Client {
	return translate.NewClient(translate.Deps{Store: store}, nil, &translate.Incoming{Account: "acme"}, 0)
}

// moody is a store that fails while its mood is an error, or hangs while it
// hangs, and counts its calls.
type moody struct {
	translate.Store
	mood        error
	hangs       bool
	asked, told int
}

var errDown = errors.New("down")

func (m *moody) say(ctx context.Context, n *int) error {
	*n++
	if m.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return m.mood
}

func (m *moody) Get(ctx context.Context, key translate.Key) (json.RawMessage, bool, error) {
	if err := m.say(ctx, &m.asked); err != nil {
		return nil, false, err
	}
	return m.Store.Get(ctx, key)
}

func (m *moody) Put(ctx context.Context, key translate.Key, value json.RawMessage, ttl time.Duration) error {
	if err := m.say(ctx, &m.told); err != nil {
		return err
	}
	return m.Store.Put(ctx, key, value, ttl)
}

func (m *moody) AddAll(ctx context.Context, account, kind string, values map[string]json.RawMessage, ttl time.Duration) error {
	if err := m.say(ctx, &m.told); err != nil {
		return err
	}
	return m.Store.AddAll(ctx, account, kind, values, ttl)
}

func (m *moody) Find(ctx context.Context, account, kind string, ids []string) ([]string, error) {
	if err := m.say(ctx, &m.asked); err != nil {
		return nil, err
	}
	return m.Store.Find(ctx, account, kind, ids)
}

func (m *moody) List(ctx context.Context, account, kind string) (map[string]json.RawMessage, error) {
	if err := m.say(ctx, &m.asked); err != nil {
		return nil, err
	}
	return m.Store.List(ctx, account, kind)
}

// TestNotesThatCannotBeReadAreKept: a request that could not read a record does not
// replace it either, although the store is back by then, and says so.
func TestNotesThatCannotBeReadAreKept(t *testing.T) {
	key := translate.Key{Account: "acme", Kind: translate.KindPod, ID: "p1"}
	reads := map[string]func(d *translate.Client) error{
		"one": func(d *translate.Client) error {
			_, _, err := translate.LoadNote[translate.PodNote](t.Context(), d, key)
			return err
		},
		"some": func(d *translate.Client) error {
			_, err := translate.FindNotes[translate.PodNote](t.Context(), d, key.Kind, []string{"p0", "p1"})
			return err
		},
		"all": func(d *translate.Client) error {
			_, err := translate.LoadNotes[translate.PodNote](t.Context(), d, key.Kind)
			return err
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			store := &moody{Store: storetest.NewMemoryStore(time.Now)}
			kept := translate.PodNote{TemplateID: "t1", InjectedEnv: []string{"PUBLIC_KEY"}}
			translate.SaveNote(t.Context(), talk(store), key, kept)
			d := talk(store)
			store.mood = errDown
			if err := read(d); !errors.Is(err, errDown) {
				t.Errorf("read: %v, want %v", err, errDown)
			}
			store.mood = nil
			translate.SaveNote(t.Context(), d, key, translate.PodNote{GPUTypeID: "g"})
			other := translate.Key{Account: "acme", Kind: translate.KindTemplate, ID: "p1"}
			translate.SaveNote(t.Context(), d, other, translate.TemplateNote{Readme: "new"})
			got, ok, err := translate.LoadNote[translate.PodNote](t.Context(), talk(store), key)
			if diff := cmp.Diff(kept, got); diff != "" || !ok || err != nil {
				t.Errorf("the note afterwards: %t, %v (-want +got):\n%s", ok, err, diff)
			}
			if _, ok, _ := translate.LoadNote[translate.TemplateNote](t.Context(), talk(store), other); !ok {
				t.Error("another record was not written")
			}
			if lines := warnings(d); len(lines) != 2 {
				t.Errorf("warnings %q, want one of the read and one of the write", lines)
			}
		})
	}
}

func TestAddNotesReplacesNothing(t *testing.T) {
	store := storetest.NewMemoryStore(time.Now)
	d := talk(store)
	key := translate.Key{Account: "acme", Kind: translate.KindPod, ID: "p1"}
	translate.SaveNote(t.Context(), d, key, translate.PodNote{TemplateID: "t1"})
	translate.AddNotes(t.Context(), d, key.Kind, map[string]translate.PodNote{"p1": {GPUTypeID: "g"}, "p2": {GPUTypeID: "g"}})
	got, err := translate.LoadNotes[translate.PodNote](t.Context(), d, key.Kind)
	want := map[string]translate.PodNote{"p1": {TemplateID: "t1"}, "p2": {GPUTypeID: "g"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("notes: %v (-want +got):\n%s", err, diff)
	}
}

// TestAHangingStoreIsAskedOnce: the time a request waits for its memory does not
// depend on how much it would read and write.
func TestAHangingStoreIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &moody{Store: storetest.NewMemoryStore(time.Now), hangs: true}
		d, begin := talk(store), time.Now()
		for range 46 {
			key := translate.Key{Account: "acme", Kind: translate.KindPod, ID: "p1"}
			if _, _, err := translate.LoadNote[translate.PodNote](t.Context(), d, key); err == nil {
				t.Error("LoadNote of a hanging store: no error")
			}
			key.ID = "p2"
			translate.SaveNote(t.Context(), d, key, translate.PodNote{})
			translate.AddNotes(t.Context(), d, key.Kind, map[string]translate.PodNote{"p3": {}})
			translate.DropNote(t.Context(), d, key)
		}
		if store.asked != 1 || store.told != 1 {
			t.Errorf("%d reads and %d writes were tried, want one of each", store.asked, store.told)
		}
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("waited %v, want 2s", took)
		}
	})
}
