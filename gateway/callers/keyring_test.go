package callers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/problem"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// Gateways tell each other when keys were last used, and forget the uses of a key that is gone.
func TestUses(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		here, there := &uses{hashes: store.Hashes{Client: r.Client, Prefix: "p:"}}, &uses{hashes: store.Hashes{Client: r.Client, Prefix: "p:"}}
		at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
		use := func(u *uses, id string, at time.Time) {
			t.Helper()
			u.usage("acme", id).seen.Store(at.Unix())
			if err := u.flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		use(here, "ci", at)
		use(here, "gone", at)
		use(there, "cd", at)
		use(there, "ci", at.Add(time.Minute))
		use(here, "ci", at.Add(time.Second)) // seen during an outage
		if err := here.forget(t.Context(), "acme", "gone"); err != nil {
			t.Fatal(err)
		}
		for name, u := range map[string]*uses{"here": here, "there": there, "new": {hashes: here.hashes}} {
			want := map[string]time.Time{"ci": at.Add(time.Minute), "cd": at}
			if got := u.lastUsed(t.Context(), "acme"); !cmp.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if diff := cmp.Diff([]string{"p:{acme}#used"}, r.Keys(t)); diff != "" {
			t.Errorf("keys in Redis (-want +got):\n%s", diff)
		}
	})
}

// A key is remembered for 30 days after it was revoked or has expired, whichever comes first, and for ever otherwise.
func TestKeysAreRememberedAfterTheirEnd(t *testing.T) {
	t.Parallel()
	at, later := time.Unix(1e9, 0), time.Unix(2e9, 0)
	for _, tt := range []struct{ revoked, expires, want time.Time }{
		{}, {at, time.Time{}, at.Add(keyRetention)}, {time.Time{}, at, at.Add(keyRetention)}, {at, later, at.Add(keyRetention)}, {later, at, at.Add(keyRetention)},
	} {
		m := runtimeKey{Key: settings.Key{Expires: tt.expires}, Revoked: tt.revoked}
		if got := m.Ends(); !got.Equal(tt.want) {
			t.Errorf("revoked %s, expires %s: ends %s, want %s", tt.revoked, tt.expires, got, tt.want)
		}
	}
}

// Of two changes that read the same record of a key, one succeeds.
func TestConcurrentChangesOfAKey(t *testing.T) {
	t.Parallel()
	s := New("t:", Deps{
		Redis: redistest.Client(t, redistest.Start(t)), Logger: slog.New(slog.DiscardHandler), Current: view.New(time.Now), Streams: new(filter.Streams),
		Apply: func(func(*Callers) (*Callers, error)) {},
	})
	change := func(what string, old *runtimeKey) (err error) {
		switch what {
		case "rotate":
			_, err = s.rotateKey(t.Context(), "acme", old, time.Hour)
		case "revoke":
			err = s.revokeKey(t.Context(), "acme", old, "ada")
		}
		return err
	}
	for i, tt := range [][2]string{{"rotate", "rotate"}, {"rotate", "revoke"}, {"revoke", "rotate"}} {
		m := runtimeKey{Key: settings.Key{ID: fmt.Sprint("ci-", i), Digest: identity.DigestOf(fmt.Sprint(i))}, Revision: 1}
		if _, err := s.changeKey(t.Context(), "acme", nil, m, ""); err != nil {
			t.Fatal(err)
		}
		read := s.keyring.Of("acme").Get(m.ID)
		if err := change(tt[0], read); err != nil {
			t.Errorf("%v: the first: %v", tt, err)
		}
		first := s.keyring.Of("acme").Get(m.ID)
		err := change(tt[1], read)
		if p, _ := errors.AsType[*problem.Problem](err); p == nil || p.Kind != problem.KeyConflict || !errors.Is(err, errKeyChanged) {
			t.Errorf("%v: the second: %v, want a conflict", tt, err)
		}
		if got := s.keyring.Of("acme").Get(m.ID); got != first || got.Revoked.IsZero() == (tt[0] == "revoke") {
			t.Errorf("%v: %+v, want the first change", tt, got)
		}
	}
}

// Keys are read though the store does not answer for revoked tokens until later.
func TestKeysDoNotWaitForTokens(t *testing.T) {
	t.Parallel()
	client := redistest.Once(t, redistest.Start(t))
	client.AddHook(slowTokens{keys: make(chan struct{})})
	applied, current := false, view.New(time.Now)
	current.Set(&view.View{Config: &settings.Config{}})
	s := New("t:", Deps{
		Redis: client, Logger: slog.New(slog.DiscardHandler), Current: current, Streams: new(filter.Streams),
		Apply: func(func(*Callers) (*Callers, error)) { applied = true },
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Refresh(ctx); err != nil || !applied {
		t.Errorf("%v, applied: %t, want the keys", err, applied)
	}
}

// slowTokens answers for revoked tokens once it was asked for keys.
type slowTokens struct{ keys chan struct{} }

func (slowTokens) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slowTokens) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch {
		case slices.Contains(cmd.Args(), any("t:keys:{news}")):
			close(s.keys)
		case slices.Contains(cmd.Args(), any("t:keys:tokens:{news}")):
			select {
			case <-s.keys:
			case <-ctx.Done():
			}
		}
		return next(ctx, cmd)
	}
}

func (slowTokens) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
