package translate_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
	"github.com/tollgate-dev/tollgate/translate/storetest"
)

func TestMemoryStore(t *testing.T) {
	storetest.Test(t, func(*testing.T) (translate.Store, func(time.Duration)) {
		now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		store := translate.NewMemoryStore(func() time.Time { return now })
		return store, func(d time.Duration) { now = now.Add(d) }
	})
}

func TestNotesSurviveARoundTrip(t *testing.T) {
	deps := translate.Deps{Store: translate.NewMemoryStore(time.Now)}.WithDefaults()
	key := translate.Key{Account: "acme", Kind: translate.KindEndpoint, ID: "e1"}
	note := translate.EndpointNote{TemplateID: "t1", GPUTypeIDs: []string{"b", "a"}, IdleTimeout: 7}
	translate.SaveNote(t.Context(), deps, key, note)
	got, ok := translate.LoadNote[translate.EndpointNote](t.Context(), deps, key)
	if diff := cmp.Diff(note, got); diff != "" || !ok {
		t.Errorf("LoadNote ok=%t (-want +got):\n%s", ok, diff)
	}
	all := translate.LoadNotes[translate.EndpointNote](t.Context(), deps, "acme", translate.KindEndpoint)
	if diff := cmp.Diff(map[string]translate.EndpointNote{"e1": note}, all); diff != "" {
		t.Errorf("LoadNotes (-want +got):\n%s", diff)
	}
	translate.DropNote(t.Context(), deps, key)
	if _, ok := translate.LoadNote[translate.EndpointNote](t.Context(), deps, key); ok {
		t.Error("LoadNote after DropNote found a note")
	}
}

// brokenStore fails every call.
type brokenStore struct{ translate.Store }

var errDown = errors.New("down")

func (brokenStore) Get(context.Context, translate.Key) (json.RawMessage, bool, error) {
	return nil, false, errDown
}

func (brokenStore) Put(context.Context, translate.Key, json.RawMessage, time.Duration) error {
	return errDown
}

func (brokenStore) List(context.Context, string, string) (map[string]json.RawMessage, error) {
	return nil, errDown
}

func TestNotesOfABrokenStoreAreMissing(t *testing.T) {
	deps := translate.Deps{Store: brokenStore{}}.WithDefaults()
	key := translate.Key{Account: "acme", Kind: translate.KindPod, ID: "p1"}
	translate.SaveNote(t.Context(), deps, key, translate.PodNote{TemplateID: "t"})
	if note, ok := translate.LoadNote[translate.PodNote](t.Context(), deps, key); ok {
		t.Errorf("LoadNote = %+v, want none", note)
	}
	if notes := translate.LoadNotes[translate.PodNote](t.Context(), deps, "acme", translate.KindPod); len(notes) != 0 {
		t.Errorf("LoadNotes = %v, want none", notes)
	}
}
