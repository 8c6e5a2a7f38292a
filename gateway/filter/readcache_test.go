package filter

import (
	"testing"
	"time"
)

func TestRecentObjects(t *testing.T) {
	now := time.Unix(1000, 0)
	r := NewReadCache(func() time.Time { return now })
	key, other := recentKey{"acme", "/v2/pods/p1"}, recentKey{"globex", "/v2/pods/p1"}
	has := func(k recentKey) bool { _, ok := r.get(k); return ok }

	r.put(key, "a", now)
	if !has(key) || has(other) {
		t.Errorf("just read: %t, of another organisation: %t; want true, false", has(key), has(other))
	}
	now = now.Add(recentFor)
	if !has(key) {
		t.Error("gone before its time")
	}
	now = now.Add(time.Millisecond)
	if has(key) {
		t.Error("older than it may be")
	}

	// A read that began before the change was made tells of before.
	began := now
	now = now.Add(10 * time.Millisecond)
	r.forget(key)
	r.put(key, "stale", began)
	if has(key) {
		t.Error("what was read before a change is taken for what is")
	}
	now = now.Add(time.Millisecond)
	r.put(key, "fresh", now)
	if doc, _ := r.get(key); doc != "fresh" {
		t.Errorf("after a fresh read: %v", doc)
	}
	for i := range maxRecent + 10 {
		r.put(recentKey{"acme", string(rune(i))}, i, now)
	}
	if n := r.objects.Len(); n != maxRecent {
		t.Errorf("%d objects are kept, want at most %d", n, maxRecent)
	}
}
