package legacy_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/test/redistest"
	"github.com/tollgate-dev/tollgate/test/translate/storetest"
	"github.com/tollgate-dev/tollgate/translate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) (*miniredis.Miniredis, *legacy.Records) {
	t.Helper()
	server := miniredis.RunT(t)
	client := redistest.Once(t, server.Addr())
	return server, legacy.NewRecords(client, "tg:translate:")
}

func TestContract(t *testing.T) {
	redistest.Each(t, func(t *testing.T, r redistest.Redis) {
		storetest.Test(t, func(t *testing.T) (translate.Store, func(time.Duration)) {
			t.Helper()
			r.Empty(t)
			return legacy.NewRecords(r.Client, "tg:translate:"), func(d time.Duration) { age(t, r, d) }
		})
	})
}

// age takes d off the time every key has left.
func age(t *testing.T, r redistest.Redis, d time.Duration) {
	t.Helper()
	for _, key := range r.Keys(t) {
		left := r.Client.PTTL(t.Context(), key).Val()
		switch {
		case left < 0: // never expires
		case left <= d:
			r.Client.Del(t.Context(), key)
		default:
			r.Client.PExpire(t.Context(), key, left-d)
		}
	}
}

func TestRecordsOfOneKindShareASlot(t *testing.T) {
	server, store := open(t)
	key := translate.Key{Account: "a}{:b", Kind: translate.KindPod, ID: "p1"}
	if err := store.Put(t.Context(), key, json.RawMessage(`1`), 0); err != nil {
		t.Fatal(err)
	}
	want := []string{"tg:translate:{a%7D%7B%3Ab:pod}", "tg:translate:{a%7D%7B%3Ab:pod}:p1"}
	for _, name := range want {
		if !server.Exists(name) {
			t.Errorf("key %q is missing; there are %q", name, server.Keys())
		}
	}
}

func TestErrorsAreTold(t *testing.T) {
	server, store := open(t)
	server.SetError("LOADING")
	key := translate.Key{Account: "a", Kind: translate.KindPod, ID: "p1"}
	_, _, getErr := store.Get(t.Context(), key)
	_, listErr := store.List(t.Context(), "a", translate.KindPod)
	for name, err := range map[string]error{
		"Get": getErr, "List": listErr,
		"Put":    store.Put(t.Context(), key, json.RawMessage(`1`), 0),
		"AddAll": store.AddAll(t.Context(), "a", translate.KindPod, map[string]json.RawMessage{"p1": json.RawMessage(`1`)}, 0),
		"Delete": store.Delete(t.Context(), key),
	} {
		if err == nil {
			t.Errorf("%s on a failing server returned no error", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := store.Get(ctx, key); !errors.Is(err, context.Canceled) {
		t.Errorf("Get with an ended context = %v, want %v", err, context.Canceled)
	}
}

// TestTheIndexForgets: entries that are written and never asked for again, such as the marks
// of pods that were handed out, leave nothing behind.
func TestTheIndexForgets(t *testing.T) {
	server, store := open(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	pass := func(d time.Duration) {
		now = now.Add(d)
		server.SetTime(now)
		server.FastForward(d)
	}
	pass(0)
	put := func(id string, ttl time.Duration) {
		t.Helper()
		if err := store.AddAll(t.Context(), "a", translate.KindPod, map[string]json.RawMessage{id: json.RawMessage(`1`)}, ttl); err != nil {
			t.Fatal(err)
		}
	}
	index := "tg:translate:{a:" + translate.KindPod + "}"
	entries := func() []string {
		t.Helper()
		if !server.Exists(index) {
			return nil
		}
		ids, err := server.ZMembers(index)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	put("p1", time.Hour)
	pass(30 * time.Minute)
	put("p2", 15*time.Minute) // ends before p1
	pass(20 * time.Minute)
	put("p3", time.Hour)
	if got, want := entries(), []string{"p1", "p3"}; !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
	pass(time.Hour)
	if got := entries(); got != nil {
		t.Errorf("entries %q after the last record has ended, want no index", got)
	}
	put("p4", 0)
	put("p5", time.Minute)
	pass(time.Hour)
	if got, err := store.List(t.Context(), "a", translate.KindPod); len(got) != 1 || got["p4"] == nil || err != nil {
		t.Errorf("List = %s, %v, want what is for ever", got, err)
	}
}
