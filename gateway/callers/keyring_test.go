package callers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// A change is read that is made some seconds after it was announced, and one without any announcement within a minute: so a gateway that
// died between the two, or a store that lost the announcement, hides no key that was revoked.
func TestChangesAreHeardOf(t *testing.T) {
	client := redistest.Client(t, redistest.Start(t))
	announced, silent := NewKeyStore(client, "k:"), store.New[json.RawMessage](client, "k:")
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	k := newKeyring(announced, view.New(func() time.Time { return now }), slog.New(slog.DiscardHandler))
	text := func(id string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"id":%q,"digests":[{"sha256":%q}],"revision":1}`, id, identity.DigestOf(id)))
	}
	// write makes a key without any announcement.
	write := func(id string) {
		t.Helper()
		one := text(id)
		w := store.Write[json.RawMessage]{Record: &one, Version: true, In: []store.Index{{Name: "all"}}}
		if _, done, err := silent.Swap(t.Context(), "acme", KeyRecord{ID: id}, w); err != nil || !done {
			t.Fatal(done, err)
		}
	}
	read := func(when string, want ...string) {
		t.Helper()
		before := k.of("acme")
		changed, err := k.refresh(t.Context(), []string{"acme", "globex"})
		if ids := before.differ(k.of("acme")); err != nil || !cmp.Equal(ids, want) || changed != (len(want) > 0) {
			t.Errorf("%s: %v, %t, %v, want %v", when, ids, changed, err, want)
		}
	}
	read("at the start")
	if _, _, err := announced.Swap(t.Context(), "acme", KeyRecord{ID: "first"}, text("first")); err != nil {
		t.Fatal(err)
	}
	read("a change with its announcement", "first")
	now = now.Add(keySettled - time.Second)
	write("late")
	read("a change some seconds after an announcement", "late")
	now = now.Add(keySettled)
	read("when nothing was announced for long")
	write("silent")
	read("a change that was not announced")
	now = now.Add(keyNet)
	read("a minute later", "silent")
}

// A poll in which nothing is announced asks for one value, however many organisations there are.
func TestQuietPollIsOneTrip(t *testing.T) {
	client := redistest.Client(t, redistest.Start(t))
	var asked commands
	client.AddHook(&asked)
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	k := newKeyring(NewKeyStore(client, "k:"), view.New(func() time.Time { return now }), slog.New(slog.DiscardHandler))
	orgs := make([]string, 1000)
	for i := range orgs {
		orgs[i] = fmt.Sprint("org-", i)
	}
	poll := func() {
		t.Helper()
		if _, err := k.refresh(t.Context(), orgs); err != nil {
			t.Fatal(err)
		}
	}
	poll()
	now = now.Add(time.Second)
	asked = 0
	poll()
	if asked != 1 {
		t.Errorf("%d commands, want 1", asked)
	}
}

// commands counts the commands of a client.
type commands int

func (*commands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		*c++
		return next(ctx, cmd)
	}
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		*c += commands(len(cmds))
		return next(ctx, cmds)
	}
}
