package filter

import (
	"strings"
	"testing"
)

// Digests identify records in the store, by gateways of other versions too.
func TestDigest(t *testing.T) {
	for want, parts := range map[string][]string{
		"8818224f8878426d3e612d1f7e6fa79d": {"a", "", "bc d"},
		"b7a602eedb3010a73659372e9940b8c1": {"/v2/pods", "", strings.Repeat("é", 300)},
	} {
		if got := Digest(parts...); got != want {
			t.Errorf("digest(%q) = %s, want %s", parts, got, want)
		}
	}
}
