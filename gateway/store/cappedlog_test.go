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

func TestJournal(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	j := &store.CappedLog{Client: redistest.Once(t, server.Addr()), Prefix: "t:", MaxLines: 2, Retention: time.Hour}
	ctx := t.Context()
	for _, entry := range []string{"one", "two", "three"} {
		if err := j.Add(ctx, "acme", []byte(entry)); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := j.List(ctx, "acme"); err != nil || !cmp.Equal(list, []string{"three", "two"}) {
		t.Errorf("the list is %q (%v), want the newest two", list, err)
	}
	if list, err := j.List(ctx, "globex"); err != nil || len(list) > 0 {
		t.Errorf("the list of another is %q (%v), want none", list, err)
	}
	if err := j.Put(ctx, "acme", "a", []byte("text")); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]string{"a": "text", "b": ""} {
		if text, err := j.Get(ctx, "acme", part); err != nil || string(text) != want {
			t.Errorf("the part %s is %q (%v), want %q", part, text, err, want)
		}
	}
	claims := func() (got []bool) {
		for range 2 {
			ok, err := j.Claim(ctx, "acme", "week")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ok)
		}
		return got
	}
	if got := claims(); !cmp.Equal(got, []bool{true, false}) {
		t.Errorf("two claims: %v, want one", got)
	}
	if err := j.Drop(ctx, "acme", "week"); err != nil {
		t.Fatal(err)
	}
	if got := claims(); !cmp.Equal(got, []bool{true, false}) {
		t.Errorf("two claims after the first was dropped: %v, want one", got)
	}
	server.FastForward(time.Hour)
	if list, err := j.List(ctx, "acme"); err != nil || len(list) > 0 || len(server.Keys()) > 0 {
		t.Errorf("after its time the list is %q (%v) beside %q, want nothing", list, err, server.Keys())
	}
	server.Close()
	if _, err := j.List(ctx, "acme"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without the store: %v, want ErrUnavailable", err)
	}
}
