package operation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/operation"
)

// later is a deferred value.
type later struct{ v any }

func (l later) Decoded() any { return l.v }

func TestDecoded(t *testing.T) {
	for _, tt := range []struct{ given, want any }{{nil, nil}, {"a", "a"}, {later{"a"}, "a"}, {later{nil}, nil}} {
		if diff := cmp.Diff(tt.want, operation.Decoded(tt.given)); diff != "" {
			t.Errorf("Decoded(%v) (-want +got):\n%s", tt.given, diff)
		}
	}
}
