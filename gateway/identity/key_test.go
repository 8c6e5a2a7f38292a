package identity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// Every change of one character shows, and so does the exchange of two neighbours.
func TestMistyped(t *testing.T) {
	key := identity.NewKey()
	if identity.HasWrongChecksum(key) || len(key) != 62 || !strings.HasPrefix(key, "tg_") {
		t.Fatalf("NewKey = %q, want tg_, 52 characters and a checksum of 7", key)
	}
	for i := len("tg_"); i < len(key); i++ {
		other := byte('A')
		if key[i] == other {
			other = 'B'
		}
		if !identity.HasWrongChecksum(key[:i] + string(other) + key[i+1:]) {
			t.Errorf("another character at %d is not noticed", i)
		}
		if i > len("tg_") && key[i] != key[i-1] && !identity.HasWrongChecksum(key[:i-1]+key[i:i+1]+key[i-1:i]+key[i+1:]) {
			t.Errorf("the exchange of the characters at %d and %d is not noticed", i-1, i)
		}
	}
	for _, other := range []string{"", "tg_live_0001", key[:55], "rp" + key[2:], key + "A"} {
		if identity.HasWrongChecksum(other) {
			t.Errorf("Mistyped(%q) = true: it is not of this form", other)
		}
	}
}

// The log is told of a mistyped key; the caller is not.
func TestFindTellsMistypedKeys(t *testing.T) {
	key := identity.NewKey()
	for text, want := range map[string]bool{key: false, key[:61] + map[bool]string{true: "A", false: "B"}[key[61] != 'A']: true} {
		_, err := directory(t).Find(t.Context(), identity.Credentials{Key: text}, now)
		if !errors.Is(err, identity.ErrUnknown) || strings.Contains(err.Error(), "mistyped") != want || strings.Contains(err.Error(), text) {
			t.Errorf("Find = %v, want an ErrUnknown that speaks of mistyping: %v", err, want)
		}
	}
}
