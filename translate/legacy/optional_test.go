package legacy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/translate/v2"
)

// What is said is sent in the form that v2 takes, and a default after it yields to it.
func TestPlain(t *testing.T) {
	var p PassThrough
	p.Set("size", int64(7))
	p.Set("tags", []string{"a"})
	p.Set("locked", false)
	p.Set("locked", true)
	p.Set("startSsh", true)
	b := v2.NewObject()
	b.Put("name", "n")
	p.Apply(b)
	want := map[string]any{"name": "n", "size": json.Number("7"), "tags": []any{"a"}, "locked": false, "startSsh": true}
	if diff := cmp.Diff(want, b.Members); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}
