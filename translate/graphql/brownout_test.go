package graphql

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate"
)

func TestABrownoutIsSaidInPlainWords(t *testing.T) {
	a, err := New(DefaultConfig(), translate.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	out := a.Brownout("", nil, "off until noon")
	var got map[string]any
	if err := json.Unmarshal(out.Body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"errors": []any{map[string]any{
		"message": "off until noon", "extensions": map[string]any{"code": "BROWNOUT", "status": 503.0},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if out.Status != 503 || out.ContentType != "application/json" || out.Header.Get("Deprecation") == "" {
		t.Errorf("status %d, %s, %v; want 503 with the migration signals", out.Status, out.ContentType, out.Header)
	}
}
