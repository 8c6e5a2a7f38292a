package ledger_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
	"github.com/tollgate-dev/tollgate/test/spend/storetest"
)

// lossy is a store that has lost a ledger. Its lock fails with each of refusals in turn.
type lossy struct {
	*storetest.Memory

	refusals []error
}

// Heads implements ledger.Store.
func (s *lossy) Heads(ctx context.Context, orgs []string) ([]ledger.Head, error) {
	heads, err := s.Memory.Heads(ctx, orgs)
	for i := range heads {
		if !heads[i].Complete {
			heads[i].Lost = ledger.LostAll
		}
	}
	return heads, err
}

// Lock implements ledger.Store.
func (s *lossy) Lock(ctx context.Context, org string) (func(), error) {
	if len(s.refusals) > 0 {
		err := s.refusals[0]
		s.refusals = s.refusals[1:]
		return nil, err
	}
	return s.Memory.Lock(ctx, org)
}

// TestARebuildBeginsAgain: a failed rebuild begins again at the next poll. An unavailable store is no reason for a warning.
func TestARebuildBeginsAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		refusal error
		warns   bool
	}{
		"the store is unavailable": {refusal: fmt.Errorf("lock: %w", ledger.ErrUnavailable)},
		"another error":            {refusal: io.ErrUnexpectedEOF, warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lossy{Memory: storetest.NewMemory(time.Now, nil), refusals: []error{tt.refusal}}
				if err := s.BeginRebuild(t.Context(), org, "t"); err != nil {
					t.Fatal(err)
				}
				d := storetest.Deps(s, &storetest.World{Orgs: []string{org}})
				var log bytes.Buffer
				d.Logger = slog.New(slog.NewTextHandler(&log, nil))
				books := ledger.New(d)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { _ = books.Watch.Run(ctx) }()
				time.Sleep(d.PollInterval / 2)
				synctest.Wait()
				if s.complete(t) {
					t.Error("the ledger is complete although its rebuild failed")
				}
				time.Sleep(d.PollInterval)
				synctest.Wait()
				if !s.complete(t) {
					t.Error("the ledger is not complete after the next poll")
				}
				if got := strings.Contains(log.String(), "level=WARN"); got != tt.warns {
					t.Errorf("warned = %t, want %t:\n%s", got, tt.warns, log.String())
				}
			})
		})
	}
}

func (s *lossy) complete(t *testing.T) bool {
	t.Helper()
	state, err := s.Show(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	return state.Complete
}
