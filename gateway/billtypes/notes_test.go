package billtypes

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/translate"
)

// slowStore is a store of notes that fails a number of times.
type slowStore struct {
	translate.Store
	fails int
	has   map[string]json.RawMessage
}

func (s *slowStore) AddAll(_ context.Context, _, _ string, values map[string]json.RawMessage, _ time.Duration) error {
	if s.fails--; s.fails >= 0 {
		return errors.New("no answer in time")
	}
	s.has = values
	return nil
}

func TestNotesOfPodsOutlastASlowStore(t *testing.T) {
	for fails, want := range map[int]bool{0: true, noteTries - 1: true, noteTries: false} {
		store := &slowStore{fails: fails}
		writePods(translate.Deps{Store: store, Logger: slog.New(slog.DiscardHandler)})([]podNote{{account: "acme", id: "p", PodNote: translate.PodNote{GPUTypeID: "NVIDIA L4"}}})
		if got := store.has["p"] != nil; got != want {
			t.Errorf("failing %d times: written %t, want %t", fails, got, want)
		}
	}
}
