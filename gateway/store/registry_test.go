package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/store"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// The registry has the members that were heard of lately, with their latest texts.
func TestRegistry(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := &store.Registry{Client: redistest.Once(t, server.Addr()), Key: "members", TTL: 5 * time.Second}
	for i, step := range []struct {
		after      time.Duration
		name, text string
		want       map[string]string
	}{
		{0, "one", "a", map[string]string{"one": "a"}},
		{time.Second, "two", "b c", map[string]string{"one": "a", "two": "b c"}},
		{4*time.Second - time.Millisecond, "two", "d", map[string]string{"one": "a", "two": "d"}},
		{time.Millisecond, "two", "", map[string]string{"two": ""}}, // the other was silent for 5 s
		{5 * time.Second, "one", "e", map[string]string{"one": "e"}},
	} {
		now = now.Add(step.after)
		server.SetTime(now)
		got, err := r.Heartbeat(t.Context(), step.name, []byte(step.text))
		if diff := cmp.Diff(step.want, got); err != nil || diff != "" {
			t.Errorf("step %d: %v, members (-want +got):\n%s", i, err, diff)
		}
	}
	if fields, err := r.Client.HKeys(t.Context(), "members").Result(); err != nil || len(fields) != 1 {
		t.Errorf("fields %q, %v, want those of one member", fields, err)
	}
	if left := r.Client.PTTL(t.Context(), "members").Val(); left != 5*time.Second {
		t.Errorf("the registry lasts %s, want 5s", left)
	}
	if err := r.Leave(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	if got, err := r.Members(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("members %v, %v, want none", got, err)
	}
	server.Close()
	if _, err := r.Members(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
}
