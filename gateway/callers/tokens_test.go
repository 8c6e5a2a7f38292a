package callers

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/view"
	"github.com/tollgate-dev/tollgate/test/redistest"
)

// revokers are two gateways that share a store.
func revokers(t *testing.T, now *time.Time) (server *miniredis.Miniredis, a, b *Tokens) {
	t.Helper()
	server = miniredis.RunT(t)
	tokens := func() *Tokens {
		return newTokens("t:", Deps{
			Redis: redistest.Once(t, server.Addr()), Logger: slog.New(slog.DiscardHandler), Current: view.New(func() time.Time { return *now }), Streams: new(filter.Streams),
		})
	}
	return server, tokens(), tokens()
}

// revoked lists what a gateway knows.
func revoked(t *testing.T, k *Tokens) (out []string) {
	t.Helper()
	list, err := k.list(t.Context(), adminapi.Principal{}, adminapi.NoParams{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Revoked {
		out = append(out, r.Token+r.Subject)
	}
	return out
}

// A revocation is known to the gateway that was asked at once, to others after a look, and to a store that has lost it after the next look.
// It ends by itself.
func TestRevocationsSpread(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	server, a, b := revokers(t, &now)
	expect := func(when string, k *Tokens, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, revoked(t, k)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	expect("at first", a)
	expect("at first, elsewhere", b)
	next := RevokedToken{Issuer: "https://issuer.example", Token: "6f1c9a", At: now, By: "ada", Until: now.Add(minRetention)}
	if err := a.add(t.Context(), &next); err != nil {
		t.Fatal(err)
	}
	if known := a.known.Of(allTokens).All(); len(known) != 1 || known[0].Token != "6f1c9a" {
		t.Errorf("known here at once: %+v", known)
	}
	expect("elsewhere", b, "6f1c9a")
	server.FlushAll()
	expect("after a loss", a, "6f1c9a")
	expect("after a loss, at a new gateway", newTokens("t:", b.deps), "6f1c9a")
	now = next.Until
	expect("in the end", b)
}

// A refresh finds that the store has lost the revocations and kept their announcements.
func TestRevocationsAreWrittenBackAtOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	server, a, b := revokers(t, &now)
	next := RevokedToken{Issuer: "https://issuer.example", Token: "6f1c9a", At: now, Until: now.Add(minRetention)}
	if err := a.add(t.Context(), &next); err != nil {
		t.Fatal(err)
	}
	refresh := func(k *Tokens) {
		t.Helper()
		now = now.Add(11 * time.Second)
		if err := k.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	refresh(a)
	refresh(a)
	for _, key := range server.Keys() {
		if strings.Contains(key, "{"+allTokens+"}") {
			server.Del(key)
		}
	}
	refresh(a)
	if diff := cmp.Diff([]string{"6f1c9a"}, revoked(t, b)); diff != "" {
		t.Errorf("at a new gateway (-want +got):\n%s", diff)
	}
}

// The later of two revocations of a subject stays: it covers more tokens.
func TestTheLaterRevocationStays(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	_, a, b := revokers(t, &now)
	late := RevokedToken{Issuer: "https://issuer.example", Subject: "ann", At: now.Add(time.Hour), Until: now.Add(minRetention)}
	early := late
	early.At = now
	for _, next := range []RevokedToken{late, early} {
		if err := a.add(t.Context(), &next); err != nil {
			t.Fatal(err)
		}
	}
	list, err := b.list(t.Context(), adminapi.Principal{}, adminapi.NoParams{})
	if err != nil || len(list.Revoked) != 1 || !list.Revoked[0].At.Equal(late.At) {
		t.Errorf("%+v (%v), want the later one", list, err)
	}
}
