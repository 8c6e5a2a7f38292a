package filter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// newSealed returns the seal of the cursors of one call, under a platform key.
func newSealed(t testing.TB, key, bound string) cursorSeal {
	t.Helper()
	aead, err := upstream.NewCredential(key).Cipher("cursors")
	if err != nil {
		t.Fatal(err)
	}
	return cursorSeal{aead, []byte(bound)}
}

// A cursor leads to its position, under its key and for its call alone, and its length does not depend on the position.
func TestCursors(t *testing.T) {
	s := newSealed(t, "pk-1", "call")
	full := position{Cursor: strings.Repeat("c", 64), Size: 1000, Before: make([]byte, maxMarks*len(mark{})), After: make([]byte, maxMarks*len(mark{})), Seek: true, Last: true}
	lengths := map[int]bool{}
	for _, p := range []position{{}, {Cursor: "x"}, full} {
		cursor, err := s.close(&p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.open(cursor)
		if diff := cmp.Diff(p, got); err != nil || diff != "" {
			t.Errorf("open: %v (-want +got):\n%s", err, diff)
		}
		for name, other := range map[string]cursorSeal{"key": newSealed(t, "pk-2", "call"), "call": newSealed(t, "pk-1", "another call")} {
			if _, err := other.open(cursor); err == nil {
				t.Errorf("it is valid for another %s", name)
			}
		}
		lengths[len(cursor)] = true
	}
	if len(lengths) != 1 {
		t.Errorf("cursors have the lengths %v, want one", lengths)
	}
}

// FuzzCursor: a cursor that is altered anywhere, cut or lengthened is none.
func FuzzCursor(f *testing.F) {
	s := newSealed(f, "pk-1", "call")
	cursor, err := s.close(&position{Cursor: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), "")
	f.Add(uint16(1), "A")
	f.Add(uint16(len(cursor)), "=")
	f.Add(uint16(len(cursor)-1), "_A")
	f.Fuzz(func(t *testing.T, at uint16, end string) {
		altered := cursor[:int(at)%(len(cursor)+1)] + end
		if _, err := s.open(altered); err == nil && strings.NewReplacer("\r", "", "\n", "").Replace(altered) != cursor {
			t.Errorf("%q is taken for a cursor", altered)
		}
	})
}
